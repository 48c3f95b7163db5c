"""The fixtures are in test/support/fixtures.py."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from support.fixtures import *  # noqa: E402,F401,F403
