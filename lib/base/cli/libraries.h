/* libraries.h - the libraries that a tool is linked with. */
#pragma once

/* Prints a line for each: its name and version. */
void libraries_print(void);
