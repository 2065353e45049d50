# SPDX-License-Identifier: Apache-2.0
"""A clock that is wrong, for a whole stand-in: what it says, signs and believes."""
import time


def add_argument(parser):
    parser.add_argument("--clock-ahead", type=float, default=0, metavar="SECONDS",
                        help="of this host's, the Date of its answers too")


def set_ahead(seconds):
    real = time.time
    time.time = lambda: real() + seconds
