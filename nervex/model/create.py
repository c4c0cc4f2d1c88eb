"""Build a model from its config section."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch.nn as nn

from nervex.utils.errors import ConfigError
from nervex.utils.import_helper import import_modules
from nervex.utils.registry_factory import MODEL_REGISTRY


def create_model(cfg: Mapping[str, Any]) -> nn.Module:
    """
    Overview:
        Import ``cfg.import_names`` (where a user's models register themselves), then build ``cfg.model_type`` from all
        other entries. ``cfg`` stays as it is.
    Arguments:
        - cfg (:obj:`Mapping`): ``model_type`` (a registered name or a class), ``import_names`` (optional), and the
          arguments of the model
    Returns:
        - model (:obj:`nn.Module`): a new model
    """
    if 'model_type' not in cfg:
        raise ConfigError(f'model.model_type: missing; one of: {", ".join(MODEL_REGISTRY.query())}')
    try:
        import_modules(cfg.get('import_names'))
    except ModuleNotFoundError as error:
        raise ConfigError(f'model.import_names: {error}') from error
    model_type = cfg['model_type']
    build = MODEL_REGISTRY.get(model_type) if isinstance(model_type, str) else model_type
    arguments = {k: v for k, v in cfg.items() if k not in ('model_type', 'import_names')}
    try:
        inspect.signature(build).bind(**arguments)
    except TypeError as error:
        name, takes = getattr(model_type, '__name__', model_type), inspect.signature(build)
        remedy = 'Give it in policy.model; nervex.config.compile_config(cfg) asks the env for sizes'
        raise ConfigError(f"model '{name}': {error}. {remedy}. It takes {takes}") from error
    return build(**arguments)
