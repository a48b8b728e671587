/* schema.h - the name of the form that records have (data/record.schema.json). */
#pragma once

#define RECORD_SCHEMA "crossover/1"
