//! The operator; local/ runs the same manifest on this computer.
