/* The load generator over TLS: link it with libssl and libcrypto. */
#define SECURE
#include "load.c"
