"""Parallel mode: collect, learn and evaluate at the same time, in as many processes as the config asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nervex.run.build import EnvSetting
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
    progress: bool = False,
    resume: str | None = None,
    trust: bool = False,
    carrier: Any = None,
    on_end: Any = None,
) -> RunResult:
    """
    Overview:
        Train until the evaluation return reaches ``evaluator.stop_val`` or the commander's limit is reached. Arguments
        as ``serial_pipeline``; the section ``parallel`` of the config says how many processes there are.
    Arguments:
        - carrier (:obj:`Carrier | None`): how roles run; None: what ``parallel.carrier`` names
        - on_end (:obj:`Callable | None`): called with the run before everything is closed
    """
    from nervex.parallel.run import start_parallel
    from nervex.run.launch import Passed, prepare_launch
    from nervex.run.progress import say_building

    launch = prepare_launch(cfg, seed, Passed(env_setting, policy_fn, model_type), overrides, resume, trust=trust)
    if (ended := launch.already()) is not None:
        return ended
    say_building(progress, launch.cfg)
    with start_parallel(launch, carrier, enable_total_log) as run:
        run.show(progress, enable_total_log)
        try:
            run.begin()
            while run.going_on():
                run.coordinator.step()
            if not run.coordinator.finished:
                run.final_evaluation()
        except KeyboardInterrupt:
            raise run.interrupted() from None
        result = run.finish()
        if on_end is not None:
            on_end(run)
        return result
