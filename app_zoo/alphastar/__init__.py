"""StarCraft II in the manner of AlphaStar: units, minimap and orders in parts, over pysc2 or a stand-in without it."""
