//! Who may call what: admission, argument and result validation, the words a model gets.
