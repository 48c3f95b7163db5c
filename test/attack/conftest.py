"""The fixtures are in test/support/fixtures.py; the helpers cli.py and lambdas.py in test/blackbox."""
import os
import sys

here = os.path.dirname(__file__)
sys.path[:0] = [os.path.join(here, ".."), os.path.join(here, "..", "blackbox")]

from support.fixtures import *  # noqa: E402,F401,F403
