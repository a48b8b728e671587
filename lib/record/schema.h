/* schema.h - the name of the form that records have (data/record.schema.json). */
#ifndef RECORD_SCHEMA_H
#define RECORD_SCHEMA_H

#define RECORD_SCHEMA "crossover/1"

#endif
