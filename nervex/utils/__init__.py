"""Helpers without any knowledge of RL: registries, errors, logging, seeding, files."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.data.structure': 'MinSegmentTree SegmentTree SumSegmentTree',
    'nervex.utils.autolog': 'BaseTime LoggedModel LoggedValue NaturalTime TickTime TimeMode TimeProxy',
    'nervex.utils.default_helper': (
        'LimitedSpaceContainer SingletonMetaclass default_get dicts_to_lists error_wrapper iter_mapping list_split '
        'lists_to_dicts override set_pkg_seed squeeze'
    ),
    'nervex.utils.file_helper': (
        'LockContext LockContextType get_data_compressor get_data_decompressor get_file_lock read_file remove_file '
        'save_file'
    ),
    'nervex.utils.config_helper': 'deep_merge_dicts deep_update read_config',
    'nervex.utils.declare': 'setting settings',
    'nervex.utils.dist_helper': (
        'DistContext allreduce allreduce_gradients broadcast dist_finalize dist_init dist_mode get_rank get_world_size '
        'is_distributed'
    ),
    'nervex.utils.errors': (
        'CheckpointError ConfigError DuplicateNameError EnvError ExtraMissingError NervexError NothingThereError '
        'TrainingError UnknownNameError nearest unknown_name'
    ),
    'nervex.utils.import_helper': 'import_module import_modules try_import',
    'nervex.utils.log_helper': 'DistributionTimeImage TBLogger TextLogger build_logger pretty_print',
    'nervex.utils.registry': 'Registry',
    'nervex.utils.registry_factory': (
        'ACTOR_REGISTRY ARMOR_PLUGIN_REGISTRY BUFFER_REGISTRY COMMANDER_REGISTRY COMM_ACTOR_REGISTRY '
        'COMM_LEARNER_REGISTRY ENV_MANAGER_REGISTRY ENV_REGISTRY EVENT_REGISTRY HEAD_REGISTRY LEAGUE_REGISTRY '
        'LEARNER_HOOK_REGISTRY LEARNER_REGISTRY MODEL_REGISTRY PLAYER_REGISTRY POLICY_REGISTRY registries'
    ),
    'nervex.utils.slurm_helper': 'find_free_port_slurm get_cls_info node_to_host node_to_partition',
    'nervex.utils.system_helper': 'PropagatingThread find_free_port get_ip get_pid get_task_uid',
    'nervex.utils.time_helper': 'EasyTimer TimeWrapper TimeWrapperCuda TimeWrapperTime WatchDog build_time_helper',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
