"""Board games for two."""

from app_zoo.board.envs.boards import CONNECT_FOUR, TIC_TAC_TOE, Boards
from app_zoo.board.envs.games import BoardGame, ConnectFour, TicTacToe
from app_zoo.board.envs.players import AlphaBeta, PerfectTicTacToe, RandomPlayer

__all__ = [
    'CONNECT_FOUR',
    'TIC_TAC_TOE',
    'AlphaBeta',
    'BoardGame',
    'Boards',
    'ConnectFour',
    'PerfectTicTacToe',
    'RandomPlayer',
    'TicTacToe',
]
