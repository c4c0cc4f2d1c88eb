"""Which kind of env manager suits a measured step time."""

from collections.abc import Sequence

from nervex.envs.hosting.step_times import StepTime
from nervex.envs.hosting.waiting import cores

WAKE_UP_S = 30e-6  # what one subprocess costs a step: two wake-ups, measured
UNEVEN = 0.5  # standard deviation over mean, of a single env, from which on waiting for all is a waste
WAITING = 0.5  # share of processor time below which an env mostly waits for something


def joined(times: Sequence[StepTime], envs_per_host: int) -> StepTime:
    """The step time of one env from those of several hosts, each a mean over its envs."""
    n = len(times)
    spread = (sum(t.std**2 for t in times) / n * envs_per_host) ** 0.5
    return StepTime(sum(t.mean for t in times) / n, spread, sum(t.busy for t in times) / n)


def pays_off_from(processors: int) -> float:
    """Seconds of a step from which on subprocesses are faster than one process, for envs that compute."""
    return WAKE_UP_S * processors / (processors - 1) if processors > 1 else float('inf')


def suitable(time: StepTime, processors: int) -> str:
    """The kind of manager, as ``env.env_manager_type`` names it."""
    waits = time.busy < WAITING
    if time.mean < (WAKE_UP_S if waits else pays_off_from(processors)):
        return 'base'
    return 'async_subprocess' if time.std > UNEVEN * time.mean else 'subprocess'


def advise(kind: str, time: StepTime, processors: int | None = None) -> str:
    """
    Overview:
        One sentence for the log: the step time, and which kind suits it.
    Arguments:
        - kind (:obj:`str`): the present kind
        - processors (:obj:`int | None`): None: those that this process may use
    """
    processors = processors or cores()
    best = suitable(time, processors)
    limit = pays_off_from(processors)
    text = f'a step of one env takes {_readable(time.mean)} (spread {time.std / max(time.mean, 1e-12):.0%}'
    text += f', of which the processor works {time.busy:.0%}): ' if time.busy < WAITING else '): '
    same = {'hybrid': 'base'}.get(kind, kind) == best or (kind == 'thread' and best != 'base' and time.busy < WAITING)
    better = f"env.env_manager_type={best} would be faster than '{kind}'"
    text += f"the env manager '{kind}' suits it" if same else better
    if best == 'base' and time.busy >= WAITING:
        text += f"; 'subprocess' pays off from about {_readable(limit)} on" if processors > 1 else '; there is one core'
    if best == 'base' and processors > 1 and kind != 'hybrid':
        text += '; with an idle core also try subprocess with env.manager.hybrid=True'
    if best != 'base' and time.busy < WAITING:
        text += "; for clients of another program 'thread' does as well"
    return text


def _readable(seconds: float) -> str:
    return f'{seconds * 1e6:.3g} us' if seconds < 1e-3 else f'{seconds * 1e3:.3g} ms'
