"""Faster versions of operators of rl_utils behind the same signatures; on when ``nervex.enable_hpc_rl`` is True."""

from nervex.hpc_rl.wrapper import find_hpc_op, hpc_wrapper, register_hpc_op

__all__ = ['find_hpc_op', 'hpc_wrapper', 'register_hpc_op']
