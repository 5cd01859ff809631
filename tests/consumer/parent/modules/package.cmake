message(FATAL_ERROR "Halyard took the parent's module")
