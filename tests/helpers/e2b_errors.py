# SPDX-License-Identifier: Apache-2.0
"""Errors of the E2B stand-in's control plane."""


class ControlError(Exception):
    """A right request that cannot be fulfilled."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
