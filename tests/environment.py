"""A data folder and a database for tests alone, chosen before Django's settings are read (see pytest.ini)."""

import atexit
import os
import shutil
import tempfile

for _name in ("REDIS_URL", "DATABASE_URL", "ALLOWED_HOSTS", "DEBUG", "SECRET_KEY"):
    os.environ.pop(_name, None)
os.environ["ADVISOR_VAR_DIR"] = tempfile.mkdtemp(prefix="advisor-tests-")
atexit.register(shutil.rmtree, os.environ["ADVISOR_VAR_DIR"], ignore_errors=True)
if "TEST_DATABASE_URL" in os.environ:
    os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]
