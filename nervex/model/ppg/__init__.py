"""Networks of phasic policy gradient."""

from nervex.model.ppg.ppg import FCPPG, PPG, ConvPPG

__all__ = ['FCPPG', 'PPG', 'ConvPPG']
