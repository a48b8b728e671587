/* libraries.h - prints the libraries that a tool is linked with. */
#pragma once

/* Prints one line for each library: its name and version. */
void libraries_print(void);
