"""The framework's registries. ``nervex -q <name>`` lists one of them."""

from nervex.utils.registry import Registry

POLICY_REGISTRY = Registry(
    'policy',
    {
        'dqn': 'nervex.policy.dqn:DQNPolicy',
        'dqn_vanilla': 'nervex.policy.dqn_vanilla:DQNVanillaPolicy',
        'rainbow_dqn': 'nervex.policy.rainbow_dqn:RainbowDQNPolicy',
        'qrdqn': 'nervex.policy.qrdqn:QRDQNPolicy',
        'alphazero': 'nervex.policy.alphazero:AlphaZeroPolicy',
        'sqn': 'nervex.policy.sqn:SQNPolicy',
        'r2d2': 'nervex.policy.r2d2:R2D2Policy',
        'qmix': 'nervex.policy.qmix:QMIXPolicy',
        'vdn': 'nervex.policy.qmix:VDNPolicy',
        'iql': 'nervex.policy.qmix:IQLPolicy',
        'atoc': 'nervex.policy.atoc:ATOCPolicy',
        'collaQ': 'nervex.policy.qmix:CollaQPolicy',
        'mappo': 'nervex.policy.mappo:MAPPOPolicy',
        'ippo': 'nervex.policy.mappo:IPPOPolicy',
        'coma': 'nervex.policy.coma:COMAPolicy',
        'maddpg': 'nervex.policy.maddpg:MADDPGPolicy',
        'matd3': 'nervex.policy.maddpg:MATD3Policy',
        'il': 'nervex.policy.il:ILPolicy',
        'cql': 'nervex.policy.cql:CQLPolicy',
        'cql_continuous': 'nervex.policy.cql:ContinuousCQLPolicy',
        'ppo': 'nervex.policy.ppo:PPOPolicy',
        'a2c': 'nervex.policy.ppo:A2CPolicy',
        'ppo_recurrent': 'nervex.policy.ppo:RecurrentPPOPolicy',
        'ppo_vanilla': 'nervex.policy.ppo_vanilla:PPOVanillaPolicy',
        'ppg': 'nervex.policy.ppg:PPGPolicy',
        'impala': 'nervex.policy.impala:IMPALAPolicy',
        'ddpg': 'nervex.policy.ddpg:DDPGPolicy',
        'td3': 'nervex.policy.ddpg:TD3Policy',
        'td3_bc': 'nervex.policy.ddpg:TD3BCPolicy',
        'sac': 'nervex.policy.sac:SACPolicy',
        'sac_discrete': 'nervex.policy.sac:DiscreteSACPolicy',
        'droq': 'nervex.policy.sac:DroQPolicy',
        'tqc': 'nervex.policy.tqc:TQCPolicy',
        'crossq': 'nervex.policy.crossq:CrossQPolicy',
        'implicit_q': 'nervex.policy.implicit_q:ImplicitQPolicy',
    },
)
ENV_REGISTRY = Registry(
    'env',
    {
        'gym': 'nervex.envs.gym_env:GymEnv',
        'pettingzoo': 'nervex.envs.pettingzoo_env:PettingZooEnv',
        'pettingzoo_game': 'nervex.envs.pettingzoo_game:PettingZooGame',
        'pendulum': 'app_zoo.classic_control.pendulum.envs.pendulum_env:PendulumEnv',
        'cartpole': 'app_zoo.classic_control.cartpole.envs.cartpole_env:CartPoleEnv',
        'smac': 'app_zoo.smac.envs:SMACEnv',
        'smac_starcraft': 'app_zoo.smac.envs.adapters:StarCraftEnv',
        'smax': 'app_zoo.smac.envs.smax:SMAXEnv',
        'cooperative_navigation': 'app_zoo.multiagent_particle.envs:CooperativeNavigationEnv',
        'simple_tag': 'app_zoo.multiagent_particle.envs:SimpleTagEnv',
        'two_step': 'app_zoo.team_games.envs:TwoStepGame',
        'matrix_game': 'app_zoo.team_games.envs:MatrixGame',
        'relay': 'app_zoo.team_games.envs:RelayGame',
        'tic_tac_toe': 'app_zoo.board.envs:TicTacToe',
        'connect_four': 'app_zoo.board.envs:ConnectFour',
        'slime_volley': 'app_zoo.slime_volley.envs:SlimeVolley',
        'kuhn_poker': 'app_zoo.poker.envs:KuhnPoker',
        'leduc_poker': 'app_zoo.poker.envs:LeducPoker',
        'rock_paper_scissors': 'app_zoo.matrix_games.envs:RockPaperScissors',
        'atari': 'app_zoo.atari.envs:AtariEnv',
        'sumo': 'app_zoo.sumo.envs:SumoEnv',
        'sumo_team': 'app_zoo.sumo.envs:SumoTeamEnv',
        'gfootball': 'app_zoo.gfootball.envs:GFootballEnv',
        'bitflip': 'app_zoo.classic_control.bitflip.envs.bitflip_env:BitFlipEnv',
    },
)
ENV_MANAGER_REGISTRY = Registry(
    'env manager',
    {
        'base': 'nervex.worker.actor.env_manager:BaseEnvManager',
        'subprocess': 'nervex.worker.actor.env_manager:SyncSubprocessEnvManager',
        'sync_subprocess': 'nervex.worker.actor.env_manager:SyncSubprocessEnvManager',
        'async_subprocess': 'nervex.worker.actor.env_manager:AsyncSubprocessEnvManager',
        'aynsc_subprocess': 'nervex.worker.actor.env_manager:AsyncSubprocessEnvManager',
        'thread': 'nervex.worker.actor.env_manager:ThreadEnvManager',
        'vector': 'nervex.worker.actor.env_manager:VectorEnvManager',
        'async_vector': 'nervex.worker.actor.env_manager:AsyncVectorEnvManager',
    },
)
WRAPPER_REGISTRY = Registry(
    'env wrapper',
    {
        'noop_reset': 'nervex.envs.wrappers.atari:NoopReset',
        'action_repeat': 'nervex.envs.wrappers.base:ActionRepeat',
        'max_and_skip': 'nervex.envs.wrappers.atari:MaxAndSkip',
        'episodic_life': 'nervex.envs.wrappers.atari:EpisodicLife',
        'fire_reset': 'nervex.envs.wrappers.atari:FireReset',
        'warp_frame': 'nervex.envs.wrappers.atari:WarpFrame',
        'scaled_float': 'nervex.envs.wrappers.atari:ScaledFloat',
        'clip_reward': 'nervex.envs.wrappers.atari:ClipReward',
        'frame_stack': 'nervex.envs.wrappers.atari:FrameStack',
        'atari': 'nervex.envs.wrappers.atari:wrap_atari',
        'time_limit': 'nervex.envs.wrappers.base:TimeLimit',
        'record_video': 'nervex.envs.wrappers.video:RecordVideo',
    },
)
MODEL_REGISTRY = Registry(
    'model',
    {
        'discrete_net': 'nervex.model:DiscreteNet',
        'fc_discrete_net': 'nervex.model:FCDiscreteNet',
        'conv_discrete_net': 'nervex.model:ConvDiscreteNet',
        'fcr_discrete_net': 'nervex.model:FCRDiscreteNet',
        'convr_discrete_net': 'nervex.model:ConvRDiscreteNet',
        'noise_fc': 'nervex.model:NoiseFCDiscreteNet',
        'noise_dist_fc': 'nervex.model:NoiseDistributionFCDiscreteNet',
        'noise_dist_conv': 'nervex.model:NoiseDistributionConvDiscreteNet',
        'noise_quantile_fc': 'nervex.model:NoiseQuantileFCDiscreteNet',
        'noise_quantile_conv': 'nervex.model:NoiseQuantileConvDiscreteNet',
        'qr_fc': 'nervex.model:QRFCDiscreteNet',
        'qr_conv': 'nervex.model:QRConvDiscreteNet',
        'sqn': 'nervex.model:SQNDiscreteNet',
        'conv_sqn': 'nervex.model:ConvSQNDiscreteNet',
        'fc_vac': 'nervex.model:FCValueAC',
        'conv_vac': 'nervex.model:ConvValueAC',
        'fcr_vac': 'nervex.model:FCRValueAC',
        'convr_vac': 'nervex.model:ConvRValueAC',
        'qac': 'nervex.model:QAC',
        'sac': 'nervex.model:SACModel',
        'sac_discrete': 'nervex.model:DiscreteSACModel',
        'conv_sac_discrete': 'nervex.model:ConvDiscreteSACModel',
        'implicit_q': 'nervex.model:ImplicitQModel',
        'fc_ppg': 'nervex.model:FCPPG',
        'conv_ppg': 'nervex.model:ConvPPG',
        'team_ac': 'nervex.model.team:TeamAC',
        'team_qac': 'nervex.model.team:TeamQAC',
        'qmix': 'nervex.model:QMix',
        'collaq': 'nervex.model:CollaQ',
        'coma': 'nervex.model:ComaNetwork',
        'atoc': 'nervex.model:ATOCQAC',
    },
)
HEAD_REGISTRY = Registry(
    'head_type',
    {
        'base': 'nervex.model.common.heads:make_q_head',
        'dist': 'nervex.model.common.heads:DistributionHead',
        'quantile': 'nervex.model.common.heads:QuantileHead',
        'qr': 'nervex.model.common.heads:QuantileRegressionHead',
    },
)
ARMOR_PLUGIN_REGISTRY = Registry(
    'armor plugin',
    {
        'grad': 'nervex.armor.plugin:GradPlugin',
        'argmax_sample': 'nervex.armor.sampling:ArgmaxSamplePlugin',
        'eps_greedy_sample': 'nervex.armor.sampling:EpsGreedySamplePlugin',
        'eps_multinomial_sample': 'nervex.armor.sampling:EpsMultinomialSamplePlugin',
        'multinomial_sample': 'nervex.armor.sampling:MultinomialSamplePlugin',
        'graph': 'nervex.armor.armor:GraphPlugin',
        'state_block': 'nervex.armor.hidden_state:StateBlockPlugin',
        'hidden_state': 'nervex.armor.hidden_state:HiddenStatePlugin',
        'action_noise': 'nervex.armor.noise:ActionNoisePlugin',
        'target': 'nervex.armor.armor:TargetPlugin',
        'teacher': 'nervex.armor.plugin:TeacherPlugin',
    },
)
LEARNER_REGISTRY = Registry('learner', {'base': 'nervex.worker.learner.base_learner:BaseLearner'})
LEARNER_HOOK_REGISTRY = Registry(
    'learner hook',
    {
        'load_ckpt': 'nervex.worker.learner.learner_hook:LoadCkptHook',
        'save_ckpt': 'nervex.worker.learner.learner_hook:SaveCkptHook',
        'log_show': 'nervex.worker.learner.learner_hook:LogShowHook',
        'log_reduce': 'nervex.worker.learner.learner_hook:LogReduceHook',
    },
)
COMM_LEARNER_REGISTRY = Registry('comm learner', {'ray': 'nervex.parallel.learner_role:LearnerRole'})
ACTOR_REGISTRY = Registry('actor', {'base': 'nervex.worker.actor.base_serial_actor:BaseSerialActor'})
TRANSFORM_REGISTRY = Registry('sample transform', {'her': 'nervex.worker.actor.transform:HindsightRelabel'})
COMM_ACTOR_REGISTRY = Registry(
    'comm actor',
    {
        'ray': 'nervex.parallel.role:ActorRole',
        'ray_evaluator': 'nervex.parallel.role:EvaluatorRole',
    },
)
COMMANDER_REGISTRY = Registry(
    'commander',
    {
        'serial': 'nervex.worker.coordinator.base_serial_commander:BaseSerialCommander',
        'league': 'nervex.worker.coordinator.naive_commander:LeagueCommander',
        'naive': 'nervex.worker.coordinator.naive_commander:NaiveCommander',
    },
)
BUFFER_REGISTRY = Registry(
    'kind of buffer',
    {'replay': 'nervex.data.replay:ReplayKind', 'on_policy': 'nervex.data.on_policy:OnPolicyKind'},
)
LEAGUE_REGISTRY = Registry(
    'league',
    {
        'one_vs_one': 'nervex.league.base_league:OneVsOneLeague',
        'solo': 'nervex.league.solo_league:SoloLeague',
    },
)
PLAYER_REGISTRY = Registry(
    'player',
    {
        'historical_player': 'nervex.league.player:HistoricalPlayer',
        'naive_sp_player': 'nervex.league.player:NaiveSpPlayer',
        'solo_active_player': 'nervex.league.player:SoloActivePlayer',
        'main_player': 'nervex.league.starcraft_player:MainPlayer',
        'main_exploiter': 'nervex.league.starcraft_player:MainExploiter',
        'league_exploiter': 'nervex.league.starcraft_player:LeagueExploiter',
    },
)
EVENT_REGISTRY = Registry(
    'event sink',
    {
        'tensorboard': 'nervex.run.events:TensorBoard',
        'jsonl': 'nervex.run.events:JsonLines',
        'csv': 'nervex.run.events:Csv',
        'wandb': 'nervex.run.trackers:WandB',
        'mlflow': 'nervex.run.trackers:MLflow',
    },
)

registries: dict[str, Registry] = {
    name.removesuffix('_REGISTRY').lower(): found
    for name, found in list(globals().items())
    if name.endswith('_REGISTRY')
}
