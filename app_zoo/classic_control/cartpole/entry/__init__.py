"""Configs of CartPole."""

from app_zoo.classic_control.cartpole.entry.cartpole_a2c_default_config import cartpole_a2c_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_cql_default_config import cartpole_cql_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_dqn_default_config import cartpole_dqn_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_dqn_vanilla_default_config import (
    cartpole_dqn_vanilla_default_config,
)
from app_zoo.classic_control.cartpole.entry.cartpole_il_default_config import cartpole_il_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_impala_default_config import cartpole_impala_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_ppg_default_config import cartpole_ppg_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_ppo_default_config import cartpole_ppo_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_ppo_recurrent_default_config import (
    cartpole_ppo_recurrent_default_config,
)
from app_zoo.classic_control.cartpole.entry.cartpole_ppo_vanilla_default_config import (
    cartpole_ppo_vanilla_default_config,
)
from app_zoo.classic_control.cartpole.entry.cartpole_qrdqn_default_config import cartpole_qrdqn_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_r2d2_default_config import cartpole_r2d2_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_rainbow_dqn_default_config import (
    cartpole_rainbow_dqn_default_config,
)
from app_zoo.classic_control.cartpole.entry.cartpole_rainbow_iqn_default_config import (
    cartpole_rainbow_iqn_default_config,
)
from app_zoo.classic_control.cartpole.entry.cartpole_sac_default_config import cartpole_sac_default_config
from app_zoo.classic_control.cartpole.entry.cartpole_sqn_default_config import cartpole_sqn_default_config

__all__ = [
    'cartpole_a2c_default_config',
    'cartpole_cql_default_config',
    'cartpole_dqn_default_config',
    'cartpole_dqn_vanilla_default_config',
    'cartpole_il_default_config',
    'cartpole_impala_default_config',
    'cartpole_ppg_default_config',
    'cartpole_ppo_default_config',
    'cartpole_ppo_recurrent_default_config',
    'cartpole_ppo_vanilla_default_config',
    'cartpole_qrdqn_default_config',
    'cartpole_r2d2_default_config',
    'cartpole_rainbow_dqn_default_config',
    'cartpole_rainbow_iqn_default_config',
    'cartpole_sac_default_config',
    'cartpole_sqn_default_config',
]
