"""What all tests share: their own data folder, chosen before Django's settings are read."""

import os
import tempfile

os.environ["ADVISOR_VAR_DIR"] = tempfile.mkdtemp(prefix="advisor-tests-")
for _name in ("REDIS_URL", "DATABASE_URL", "ALLOWED_HOSTS", "DEBUG", "SECRET_KEY"):
    os.environ.pop(_name, None)
