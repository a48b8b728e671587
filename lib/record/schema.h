/* schema.h - the name of the schema of records (data/record.schema.json). */
#pragma once

#define RECORD_SCHEMA "crossover/1"
