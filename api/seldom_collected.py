"""Import Tapeless without garbage collections, which would walk all its modules several times and find nothing.

Importing this module makes collections too rare for one to begin before the import is over, and `as_before` ends that.
They are not switched off: where importing fails, there will be some.
"""

import gc

_before = gc.get_threshold()
gc.set_threshold(1_000_000, *_before[1:])


def as_before() -> None:
    """Let garbage be collected as often as before the import, what the import made being old already.

    Freezing and unfreezing moves all objects to the oldest generation without a walk through them. Objects that
    somebody else has frozen would be unfrozen, too: if there are any, the next collection walks through the modules.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
    gc.set_threshold(*_before)
