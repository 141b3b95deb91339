from reflection.masking import MaskState, find, mask_text, mask_value  # noqa: F401
