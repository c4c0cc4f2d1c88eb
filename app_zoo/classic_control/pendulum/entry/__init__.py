"""Configs of Pendulum."""

from app_zoo.classic_control.pendulum.entry.pendulum_cql_default_config import pendulum_cql_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_crossq_default_config import pendulum_crossq_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_ddpg_default_config import pendulum_ddpg_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_droq_default_config import pendulum_droq_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_implicit_q_default_config import pendulum_implicit_q_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_ppo_default_config import pendulum_ppo_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_sac_default_config import pendulum_sac_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_td3_bc_default_config import pendulum_td3_bc_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_td3_default_config import pendulum_td3_default_config
from app_zoo.classic_control.pendulum.entry.pendulum_tqc_default_config import pendulum_tqc_default_config

__all__ = [
    'pendulum_cql_default_config',
    'pendulum_crossq_default_config',
    'pendulum_ddpg_default_config',
    'pendulum_droq_default_config',
    'pendulum_implicit_q_default_config',
    'pendulum_ppo_default_config',
    'pendulum_sac_default_config',
    'pendulum_td3_bc_default_config',
    'pendulum_td3_default_config',
    'pendulum_tqc_default_config',
]
