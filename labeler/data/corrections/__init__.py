"""People's corrections of labels.

``correction`` defines one correction, ``file`` stores them, ``majority`` combines those of several
people, ``applying`` makes corrected labels, ``selection`` counts which labels people judged.
"""
