"""What goes together: a policy with its settings, and with the actions and observations of an env."""

from __future__ import annotations

from typing import Any

from nervex.utils import POLICY_REGISTRY, ConfigError

_WORDS = {
    'discrete': 'discrete actions',
    'multi_discrete': 'discrete actions of several heads',
    'continuous': 'continuous actions',
}


def misfits(policy: Any, cfg: dict) -> list[tuple[str, str]]:
    """
    Overview:
        Settings of a policy class that make no sense for it: pairs (path in the policy's section, what is wrong).
    """
    problems = []
    if cfg.use_priority and policy.no_priority is not None:
        problems.append(('use_priority', f'got True, but {policy.no_priority}; set it to False'))
    elif cfg.use_priority and cfg.on_policy:
        text = 'got True, but an on-policy buffer gives out all samples equally; set one of the two to False'
        problems.append(('use_priority', text))
    algo = cfg.learn.algo if 'algo' in cfg.learn else {}
    if policy.no_nstep is not None and 'nstep' in algo and algo.nstep != 1:
        problems.append(('learn.algo.nstep', f'got {algo.nstep}, but {policy.no_nstep}; leave it out'))
    return problems


def check_env(policy: Any, env_info: Any) -> None:
    """
    Overview:
        A ConfigError if the policy class cannot serve the actions of the env, or would not see its action mask. It
        names the policies that can.
    """
    kind, masked = _kind(env_info), _masked(env_info)
    if _serves(policy, kind, masked):
        return
    name = policy.config.get('policy_type') or policy.__name__
    if masked and _serves(policy, kind, False):
        why = 'which does not keep to an action_mask, but the observations of the env have one'
    else:
        why = f'which gives {" or ".join(_WORDS[k] for k in policy.action_kinds)}, but the env takes {_WORDS[kind]}'
    others = [other for other in POLICY_REGISTRY.query() if _serves(POLICY_REGISTRY.get(other), kind, masked)]
    raise ConfigError([f'policy.policy_type: got {name}, {why}; take one of {", ".join(others)}'])


def _serves(policy: Any, kind: str | None, masked: bool) -> bool:
    kinds = getattr(policy, 'action_kinds', None)
    return (kinds is None or kind is None or kind in kinds) and (
        not masked or getattr(policy, 'takes_action_mask', True)
    )


def _kind(env_info: Any) -> str | None:
    """The kind of the env's actions; None: it does not say."""
    value = env_info.act_space.value
    kind = value.get('kind') if isinstance(value, dict) else None
    return kind if kind in _WORDS else None


def _masked(env_info: Any) -> bool:
    shape = env_info.obs_space.shape
    return isinstance(shape, dict) and 'action_mask' in shape
