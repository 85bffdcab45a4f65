"""What all tests share: their own data folder and database, chosen before Django's settings are read."""

import os
import tempfile

for _name in ("REDIS_URL", "DATABASE_URL", "ALLOWED_HOSTS", "DEBUG", "SECRET_KEY"):
    os.environ.pop(_name, None)
os.environ["ADVISOR_VAR_DIR"] = tempfile.mkdtemp(prefix="advisor-tests-")
if "TEST_DATABASE_URL" in os.environ:
    os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]
