"""The fixtures are in test/support/fixtures.py."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from support import engines  # noqa: E402
from support.fixtures import *  # noqa: E402,F401,F403

# Files whose tests take a minute or more together, longest first: begun late, they would be waited for at the end.
LONG = ["test_triggers_elsewhere.py", "test_cli_copy.py", "test_patterns.py", "test_library.py", "test_indexes.py",
        "test_hostile_functions.py", "test_pattern_history.py", "test_cli_patterns.py", "test_remote.py", "test_cli.py",
        "test_examples.py", "test_pattern_logs.py", "test_mapping_settings.py", "test_pattern_jobs.py"]


def pytest_collection_modifyitems(config, items):
    engines.choose(config, items)
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
