/* libraries.c - see libraries.h. Each library reports its own version at run time, so the list is
 * right if a shared library was replaced after the build. A static build prints the same list. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "lib/base/cli/libraries.h"

#include <archive.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <pcre2.h>
#include <stdio.h>
#include <utf8proc.h>
#include <zlib.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

void libraries_print(void)
{
    char pcre[64] = "";
    pcre2_config(PCRE2_CONFIG_VERSION, pcre);
    printf("jansson %s\nPCRE2 %s\nutf8proc %s\nzlib %s\n%s\n%s\n", jansson_version_str(), pcre,
           utf8proc_version(), zlibVersion(), archive_version_details(),
           OpenSSL_version(OPENSSL_VERSION));
#ifdef __GLIBC__
    printf("glibc %s\n", gnu_get_libc_version());
#endif
}
