//! Logging: set up once, field names in one place.
