"""Every documented name is where the documentation says, whatever moves inside."""

import importlib

import pytest

# module -> names that users import from it
NAMES = {
    'nervex': '__TITLE__ __VERSION__ __DESCRIPTION__ __AUTHOR__ __AUTHOR_EMAIL__ __version__ enable_hpc_rl Agent',
    'nervex.armor': """
        BaseArmor Armor IArmorPlugin IArmorStatelessPlugin IArmorStatefulPlugin add_plugin register_plugin GradHelper
        HiddenStateHelper HiddenStatePlugin ArgmaxSampleHelper EpsGreedySampleHelper MultinomialSampleHelper
        ActionNoiseHelper TargetNetworkHelper TeacherNetworkHelper""",
    'nervex.config': """
        Config read_config parallel_transform parallel_transform_slurm parallel_transform_k8s compile_config
        buffer_manager_default_config base_learner_default_config coordinator_default_config
        parallel_local_default_config""",
    'nervex.config.config': 'Config read_config',
    'nervex.config.buffer_manager': 'buffer_manager_default_config',
    'nervex.config.serial': 'base_learner_default_config',
    'nervex.config.parallel': 'coordinator_default_config parallel_local_default_config',
    'nervex.config.utils': """
        parallel_transform parallel_transform_slurm parallel_transform_k8s set_host_port
        set_learner_interaction_for_coordinator set_actor_interaction_for_coordinator""",
    'nervex.data': """
        Batch BufferManager default_collate default_decollate timestep_collate diff_shape_collate AsyncDataLoader
        IDataLoader ReplayBuffer""",
    'nervex.data.structure': """
        PrioritizedReplayBuffer PrioritizedBuffer ReplayBuffer NaiveReplayBuffer Cache SumSegmentTree MinSegmentTree
        SegmentTree RecordList NaturalMonitor InTickMonitor OutTickMonitor""",
    'nervex.entry': 'serial_pipeline eval parallel_pipeline',
    'nervex.envs': """
        BaseEnv BaseEnvTimestep BaseEnvInfo register_env env_mapping get_vec_env_setting BaseEnvManager
        SubprocessEnvManager SyncSubprocessEnvManager AsyncSubprocessEnvManager""",
    'nervex.envs.env.base_env': 'BaseEnv BaseEnvTimestep BaseEnvInfo register_env env_mapping get_vec_env_setting',
    'nervex.envs.common': 'EnvElement EnvElementInfo EnvElementRunner',
    'nervex.worker.actor.env_manager': """
        BaseEnvManager SubprocessEnvManager SyncSubprocessEnvManager AsyncSubprocessEnvManager""",
    'nervex.hpc_rl.wrapper': 'hpc_wrapper',
    'nervex.interaction': """
        Master Slave TaskFail TaskRefuse ConnectionRefuse DisconnectionRefuse TaskStatus Task""",
    'nervex.interaction.base': '',
    'nervex.interaction.config': '',
    'nervex.interaction.exception': '',
    'nervex.interaction.master': 'Master',
    'nervex.interaction.slave': 'Slave',
    'nervex.league': """
        pfsp uniform BattleRecordDict BattleSharedPayoff SoloSharedPayoff SoloPayoff create_payoff Player
        HistoricalPlayer ActivePlayer NaiveSpPlayer SoloActivePlayer MainPlayer MainExploiter LeagueExploiter BaseLeague
        OneVsOneLeague SoloLeague create_league register_league register_player Elo TrueSkill""",
    'nervex.league.algorithm': 'pfsp uniform',
    'nervex.league.payoff': 'BattleSharedPayoff create_payoff',
    'nervex.league.player': 'Player HistoricalPlayer ActivePlayer NaiveSpPlayer SoloActivePlayer',
    'nervex.league.shared_payoff': 'BattleSharedPayoff SoloSharedPayoff',
    'nervex.league.solo_league': 'SoloLeague',
    'nervex.league.starcraft_player': 'MainPlayer MainExploiter LeagueExploiter',
    'nervex.league.base_league': 'BaseLeague create_league',
    'nervex.league.league_wrapper': 'league_wrapper LeagueWrapper',
    'nervex.config.league': 'one_vs_one_league_default_config solo_league_default_config',
    'nervex.loader': """
        Loader keep raw optional check_only check is_type to_type is_callable prop method fcall fpartial numeric
        interval positive negative is_positive is_negative non_negative non_positive plus minus minus_with multi divide
        divide_with power power_with msum mmulti mcmp enum rematch regrep collection tuple_ length length_is contains
        cofilter tpselector CollectionError dict_ DictError mapping mpfilter mpkeys mpvalues mpitems item item_or
        MappingError norm normfunc lnot land lor lin lis lisnot lsum lcmp CompositeStructureError""",
    'nervex.model': """
        DiscreteNet FCDiscreteNet ConvDiscreteNet FCRDiscreteNet ConvRDiscreteNet NoiseFCDiscreteNet
        NoiseDistributionFCDiscreteNet NoiseQuantileFCDiscreteNet SQNDiscreteNet ConvEncoder FCEncoder ActorCriticBase
        DuelingHead ValueAC FCValueAC ConvValueAC QAC SACModel QMix Mixer CollaQ ComaNetwork ATOCQAC PPG create_model
        register_model MODEL_REGISTRY""",
    'nervex.model.discrete_net.discrete_net': 'DiscreteNet FCDiscreteNet ConvDiscreteNet',
    'nervex.model.actor_critic': 'ValueAC FCValueAC ConvValueAC',
    'nervex.model.atoc': 'ATOCQAC',
    'nervex.model.coma': 'ComaNetwork',
    'nervex.model.discrete_net': 'FCDiscreteNet',
    'nervex.model.qac': 'QAC',
    'nervex.model.qmix': 'QMix Mixer CollaQ',
    'nervex.model.sac': 'SACModel',
    'nervex.policy': 'Policy CommonPolicy register_policy create_policy batched check_batched',
    'nervex.policy.base_policy': 'Policy register_policy create_policy',
    'nervex.policy.common_policy': 'CommonPolicy',
    'nervex.rl_utils': """
        q_1step_td_data q_1step_td_error q_nstep_td_data q_nstep_td_error q_nstep_td_error_with_rescale
        dist_1step_td_data dist_nstep_td_data dist_nstep_td_error iqn_nstep_td_data iqn_nstep_td_error
        qrdqn_nstep_td_data qrdqn_nstep_td_error v_1step_td_data v_nstep_td_data v_1step_td_error v_nstep_td_error
        nstep_return_data nstep_return td_lambda_data td_lambda_error generalized_lambda_returns multistep_forward_view
        gae_data gae a2c_data a2c_loss a2c_error ppo_data ppo_loss ppo_info ppo_error ppo_error_continous
        ppo_policy_error ppo_value_error ppg_data ppg_joint_loss ppg_joint_error coma_data coma_loss coma_error
        vtrace_data vtrace_loss vtrace_error vtrace_nstep_return vtrace_advantage compute_importance_weights upgo_loss
        upgo_returns tb_cross_entropy value_transform value_inv_transform beta_function_map epsilon_greedy
        get_epsilon_greedy_fn BaseNoise GaussianNoise OUNoise create_noise_generator Adder""",
    'nervex.rl_utils.isw': 'compute_importance_weights',
    'nervex.torch_utils': """
        build_checkpoint_helper CountVar auto_checkpoint to_device to_dtype to_tensor to_ndarray to_list tensor_to_list
        same_shape build_log_buffer LogDict CudaFetcher get_tensor_data Pd CategoricalPd CategoricalPdPytorch
        levenshtein_distance hamming_distance LabelSmoothCELoss SoftFocalLoss build_ce_criterion MultiLogitsLoss GLU
        build_activation build_normalization conv1d_block conv2d_block deconv2d_block fc_block MLP one_hot
        binary_encode NearestUpsample BilinearUpsample NoiseLinearLayer ResBlock ResFCBlock get_lstm sequence_mask
        SoftArgmax Transformer ScatterConnection is_differentiable Adam RMSprop""",
    'nervex.torch_utils.optimizer_helper': 'Adam RMSprop',
    'nervex.torch_utils.checkpoint_helper': 'build_checkpoint_helper CountVar auto_checkpoint',
    'nervex.utils': """
        build_logger pretty_print read_config deep_merge_dicts deep_update lists_to_dicts dicts_to_lists squeeze
        default_get list_split error_wrapper LimitedSpaceContainer override set_pkg_seed SingletonMetaclass get_rank
        get_world_size allreduce broadcast dist_mode dist_init DistContext read_file save_file remove_file import_module
        LockContext LockContextType get_file_lock DistributionTimeImage node_to_host node_to_partition
        find_free_port_slurm get_cls_info get_ip get_pid get_task_uid PropagatingThread find_free_port
        build_time_helper EasyTimer TimeWrapper WatchDog iter_mapping get_data_compressor get_data_decompressor Registry
        POLICY_REGISTRY ENV_REGISTRY LEARNER_REGISTRY COMM_LEARNER_REGISTRY ACTOR_REGISTRY COMM_ACTOR_REGISTRY
        COMMANDER_REGISTRY LEAGUE_REGISTRY PLAYER_REGISTRY MODEL_REGISTRY registries
        SegmentTree SumSegmentTree MinSegmentTree""",
    'nervex.utils.autolog': """
        BaseTime NaturalTime TickTime TimeProxy TimeMode LoggedValue LoggedModel""",
    'nervex.worker': """
        BaseSerialActor BaseSerialEvaluator BaseSerialCommander BaseLearner create_learner register_learner_hook
        BaseEnvManager SubprocessEnvManager SyncSubprocessEnvManager AsyncSubprocessEnvManager Coordinator
        register_actor register_learner""",
    'nervex.worker.actor': 'BaseSerialActor BaseSerialEvaluator register_actor',
    'nervex.worker.adapter': 'LearnerAggregator',
    'nervex.worker.coordinator': 'Coordinator BaseSerialCommander NaiveCommander',
    'nervex.worker.learner': """
        BaseLearner create_learner register_learner build_learner_hook_by_cfg add_learner_hook merge_hooks""",
    'app_zoo.classic_control.cartpole.entry': 'cartpole_dqn_default_config',
    'app_zoo.classic_control.cartpole.envs': 'CartPoleEnv',
}
# policies, by the module that the documented configs name in ``import_names``
POLICY_MODULES = 'a2c dqn ppo ddpg td3 sac rainbow_dqn r2d2 impala ppg sqn il dqn_vanilla ppo_vanilla qrdqn cql'


@pytest.mark.parametrize('module', NAMES)
def test_documented_names_are_there(module):
    found = importlib.import_module(module)
    missing = [name for name in NAMES[module].split() if not hasattr(found, name)]
    assert not missing, f'{module} lacks {missing}'


@pytest.mark.parametrize('name', POLICY_MODULES.split())
def test_documented_policy_modules_register_a_policy(name):
    found = importlib.import_module(f'nervex.policy.{name}')
    assert any(hasattr(value, 'learn_mode') for value in vars(found).values() if isinstance(value, type))
