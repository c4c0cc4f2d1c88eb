"""Parallel mode: collect, learn and evaluate at the same time, in as many processes as the config asks for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nervex.run.launch import EnvSetting
    from nervex.run.result import RunResult


def parallel_pipeline(
    cfg: str | dict | None,
    seed: int | None = 0,
    env_setting: EnvSetting | None = None,
    policy_fn: Any = None,
    model_type: Any = None,
    *,
    enable_total_log: bool = False,
    overrides: tuple[str, ...] = (),
    progress: bool | None = None,
    resume: str | None = None,
    trust: bool = False,
    carrier: Any = None,
) -> RunResult:
    """
    Overview:
        Train until the evaluation return reaches ``evaluator.stop_val`` or the commander's limit is reached. Arguments
        as ``serial_pipeline``; the section ``parallel`` of the config says how many processes there are.
    Arguments:
        - carrier (:obj:`Carrier | None`): how roles run; None: what ``parallel.carrier`` names
    """
    from nervex.parallel.league_run import ParallelLeague
    from nervex.parallel.run import ParallelRun
    from nervex.run.launch import Passed, prepare_launch
    from nervex.utils import COMMANDER_REGISTRY

    launch = prepare_launch(cfg, seed, Passed(env_setting, policy_fn, model_type), overrides, resume, trust=trust)
    many = COMMANDER_REGISTRY.get(launch.cfg.commander.commander_type).many_learners
    start = partial(ParallelLeague if many else ParallelRun, carrier=carrier, show_output=enable_total_log)
    return launch.carry_out(start, parallel_loop, progress, enable_total_log)


def parallel_loop(run: Any) -> None:
    """The loop of a ``ParallelRun``, or of a league of them."""
    while run.going_on():
        run.step()
    run.final_evaluation()
