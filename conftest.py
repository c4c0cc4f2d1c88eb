"""Tests that need a package which is not there: `make test` skips them, `make test-extras` runs just these."""

import gc
import re
import signal
from collections.abc import Generator

import pytest

# not in pip's registry: a browser, simulators that are installed by hand; or, as JAX for smax, too large for every run;
# or with pins of its own, as minari
BY_HAND = ('chromium', 'dm_control', 'gfootball', 'minari', 'pysc2', 'shimmy', 'smac', 'smax')
_MISSING = re.compile(r'could not import|No module named|is not installed|pip install')
_KEY = 'nervex/skipped_for_packages'


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test-extras`."""
    text = 'run what the last run without it skipped because a package was missing; to skip it again is a failure'
    parser.addoption('--skipped-for-packages', action='store_true', help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to note what is skipped; let a lost terminal end what tests start, though nohup has switched that off."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    skipped = Skipped(config)
    config.pluginmanager.register(skipped, 'nervex-skipped')
    if skipped.wanted and config.args_source is config.ArgsSource.TESTPATHS:
        files = sorted({node.split('::')[0] for node in skipped.wanted})
        config.args[:] = [str(config.rootpath / file) for file in files]  # to import all the others takes a while


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests are there for good: garbage is not looked for while they come, nor later among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


class Skipped:
    """
    Notes the tests and modules that were skipped for a missing package. Of several processes (pytest-xdist), the one
    that has started the others hears all reports and keeps the list; the others choose by it.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._cache = config, getattr(config, 'cache', None)  # none with -p no:cacheprovider
        self._again, self._keeps = config.getoption('--skipped-for-packages'), not hasattr(config, 'workerinput')
        self._found: dict[str, str] = {}  # node -> reason
        self.wanted: set[str] = set(self._cache.get(_KEY, [])) if self._again and self._cache is not None else set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Of the tests, keep those that were skipped."""
        if self._again and self._cache is not None:
            chosen, others = [], []
            for item in items:
                (chosen if self.wanted & {item.nodeid, item.nodeid.split('::')[0]} else others).append(item)
            self._config.hook.pytest_deselected(items=others)
            items[:] = chosen

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ''
        if report.skipped and _MISSING.search(reason) and not any(name in reason for name in BY_HAND):
            self._found[report.nodeid] = reason

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module may be skipped as a whole."""
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Or one test."""
        self._note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the list for the next run; that one has none any more."""
        if not self._keeps:
            return
        if not self._again and self._cache is not None:
            self._cache.set(_KEY, sorted(self._found))
        elif self._again and self._found:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            for node, reason in self._found.items():
                print(f'\nSKIPPED FOR A MISSING PACKAGE {node}: {reason}')
