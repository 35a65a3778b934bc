"""Imported once by the process that service processes are forked from; computes nothing, so that no thread runs in it."""

import transformers.models.auto
import transformers.models.bert.modeling_bert  # noqa: F401

import dmin.classifier
import dmin.server.run
import dmin.training  # noqa: F401
