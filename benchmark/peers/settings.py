"""The settings that every training loop of the comparison shares. Each adapter translates them for its library."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class DQNSettings:
    """CartPole-v1, one env; epsilon falls linearly from 1 to 0.05 over the first half of the run."""

    env_steps: int = 20_000
    update_every: int = 4  # env steps per update
    env_id: str = 'CartPole-v1'
    envs: int = 1
    hidden: tuple[int, ...] = (128, 128)
    batch_size: int = 64
    warm_up: int = 1_000  # env steps before the first update
    target_copy_every: int = 500  # env steps between hard copies of the target network
    learning_rate: float = 1e-3
    gamma: float = 0.99
    buffer_size: int = 20_000
    epsilon_end: float = 0.05
    epsilon_fraction: float = 0.5  # of the run until epsilon_end is reached

    @property
    def round(self) -> int:
        """Env steps between two turns of updates."""
        return max(self.update_every, self.envs)

    @property
    def updates(self) -> int:
        """Of a turn."""
        return self.round // self.update_every


@dataclass(frozen=True)
class PPOSettings:
    """CartPole-v1, separate tanh networks for actor and critic, no learning-rate schedule."""

    env_steps: int = 20 * 1024
    env_id: str = 'CartPole-v1'
    envs: int = 8
    rollout: int = 128  # steps per env and iteration
    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 4
    batch_size: int = 256  # 4 minibatches of a rollout of 8 x 128
    learning_rate: float = 2.5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy_weight: float = 0.01
    value_weight: float = 0.5
    grad_clip_norm: float = 0.5
    normalize: bool = False  # observations and rewards, by running means


@dataclass(frozen=True)
class SACSettings:
    """Pendulum-v1, one env, twin critics, learned temperature, one update per env step."""

    env_steps: int = 1_500
    env_id: str = 'Pendulum-v1'
    hidden: tuple[int, ...] = (256, 256)
    batch_size: int = 256
    warm_up: int = 500  # env steps with random actions and no update
    learning_rate: float = 1e-3
    gamma: float = 0.99
    tau: float = 0.005  # of the target networks' moving average
    buffer_size: int = 20_000


@dataclass(frozen=True)
class DeterministicSettings(SACSettings):
    """As SAC's, with Gaussian noise of a tenth of the action's range; TD3 also smooths the target's action."""

    env_steps: int = 2_000
    twins: bool = False  # two critics
    actor_every: int = 1  # updates of the critics between two of the actor and the targets
    exploration_sigma: float = 0.1
    target_sigma: float = 0.0  # noise on the target's action
    target_clip: float = 0.5


DQN = DQNSettings()
DQN_1_TO_1 = DQNSettings(env_steps=6_000, update_every=1)
PPO = PPOSettings()
SAC = SACSettings()
DDPG = DeterministicSettings()
TD3 = DeterministicSettings(twins=True, actor_every=2, target_sigma=0.2)


# Pong: grey frames of 84 x 84, four of them stacked, each after four of the game's; the convolutions of DQN's paper
PONG_DQN = DQNSettings(
    env_steps=4_000,
    env_id='Pong',
    hidden=(512,),
    batch_size=32,
    warm_up=400,
    target_copy_every=1_000,
    learning_rate=1e-4,
    buffer_size=10_000,
)
PONG_DQN_8 = replace(PONG_DQN, envs=8)
PONG_PPO = PPOSettings(env_steps=6 * 1024, env_id='Pong', hidden=(512,), clip=0.1)

CHEETAH_SAC = replace(SAC, env_id='HalfCheetah-v5', learning_rate=3e-4)
CHEETAH_TD3 = replace(TD3, env_id='HalfCheetah-v5')
CHEETAH_PPO = PPOSettings(
    env_steps=5 * 2048,
    env_id='HalfCheetah-v5',
    envs=1,
    rollout=2048,
    epochs=10,
    batch_size=64,
    learning_rate=3e-4,
    entropy_weight=0.0,
    normalize=True,
)


@dataclass(frozen=True)
class QMIXSettings:
    """Cooperative navigation with three agents, epsilon from 1 to 0.05 over 50,000 env steps; EPyMARL's defaults."""

    env_steps: int = 20_000
    agents: int = 3
    episode: int = 25  # env steps, and steps of a sequence
    hidden: int = 64  # of two layers without a memory; of the mixer's hypernetworks
    mixing: int = 32
    batch_size: int = 32  # episodes
    buffer_size: int = 5_000  # episodes
    update_every: int = 1  # episodes per update
    target_copy_every: int = 200  # episodes
    learning_rate: float = 5e-4
    gamma: float = 0.99
    grad_clip_norm: float = 10.0
    epsilon_end: float = 0.05
    epsilon_steps: int = 50_000


@dataclass(frozen=True)
class MAPPOSettings:
    """The same task: ten envs, an episode of each is a batch; a memory for the actors, a critic of the state."""

    env_steps: int = 20_000
    agents: int = 3
    episode: int = 25
    envs: int = 10
    hidden: int = 128
    epochs: int = 4
    learning_rate: float = 3e-4
    gamma: float = 0.99
    clip: float = 0.2
    entropy_weight: float = 0.001
    grad_clip_norm: float = 10.0


QMIX = QMIXSettings()
MAPPO = MAPPOSettings()
