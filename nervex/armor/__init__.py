"""
Run-time behaviour around a model: how its output becomes an action, target networks, hidden state, gradients.

    armor = Armor(model)
    armor.add_model('target', update_type='assign', update_kwargs={'freq': 100})
    armor.add_plugin('main', 'eps_greedy_sample')
    output = armor.forward({'obs': obs}, eps=0.1)
"""

from .armor import Armor
from .base_armor import BaseArmor
from .hidden_state import HiddenStatePlugin
from .noise import ActionNoisePlugin
from .plugin import IArmorPlugin, IArmorStatefulPlugin, IArmorStatelessPlugin, add_plugin, register_plugin
from .running import GradPlugin, GraphPlugin, TeacherPlugin
from .sampling import ArgmaxSamplePlugin, Draws, EpsGreedySamplePlugin, MultinomialSamplePlugin, mu_sigma_of
from .target import TargetPlugin

#: other names of the plugin classes
GradHelper = GradPlugin
HiddenStateHelper = HiddenStatePlugin
ArgmaxSampleHelper = ArgmaxSamplePlugin
EpsGreedySampleHelper = EpsGreedySamplePlugin
MultinomialSampleHelper = MultinomialSamplePlugin
ActionNoiseHelper = ActionNoisePlugin
TargetNetworkHelper = TargetPlugin
TeacherNetworkHelper = TeacherPlugin

__all__ = [
    'ActionNoiseHelper',
    'ActionNoisePlugin',
    'ArgmaxSampleHelper',
    'ArgmaxSamplePlugin',
    'Armor',
    'BaseArmor',
    'Draws',
    'EpsGreedySampleHelper',
    'EpsGreedySamplePlugin',
    'GradHelper',
    'GradPlugin',
    'GraphPlugin',
    'HiddenStateHelper',
    'HiddenStatePlugin',
    'IArmorPlugin',
    'IArmorStatefulPlugin',
    'IArmorStatelessPlugin',
    'MultinomialSampleHelper',
    'MultinomialSamplePlugin',
    'TargetNetworkHelper',
    'TargetPlugin',
    'TeacherNetworkHelper',
    'TeacherPlugin',
    'add_plugin',
    'mu_sigma_of',
    'register_plugin',
]
