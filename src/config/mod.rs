//! Settings: composed here, declared where they are used.
