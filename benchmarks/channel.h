/* Sends and receives for the load generator: on TLS where SECURE is defined (it needs libssl), else as they are. */
#ifdef SECURE
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { DESCRIPTORS = 1 << 16 };
static SSL *secured[DESCRIPTORS];

static void secure(int fd) {
    static SSL_CTX *context;
    if (!context) {
        signal(SIGPIPE, SIG_IGN);
        context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    }
    secured[fd] = SSL_new(context);
    SSL_set_fd(secured[fd], fd);
    if (SSL_connect(secured[fd]) != 1) die("TLS handshake");
}

static ssize_t outcome(SSL *ssl, int n) {
    int error = SSL_get_error(ssl, n);
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) errno = EAGAIN;
    ERR_clear_error();
    return -1;
}

static ssize_t wire_send(int fd, const void *p, size_t n, int flags) {
    (void)flags;
    int done = SSL_write(secured[fd], p, (int)n);
    return done > 0 ? done : outcome(secured[fd], done);
}

/* As many records as fit; a blocking descriptor waits for the first only. */
static ssize_t wire_recv(int fd, void *p, size_t n, int flags) {
    size_t have = 0;
    do {
        int got = SSL_read(secured[fd], (char *)p + have, (int)(n - have));
        if (got <= 0) return have ? (ssize_t)have : outcome(secured[fd], got);
        have += got;
    } while (have < n && (flags & MSG_DONTWAIT || SSL_pending(secured[fd])));
    return have;
}

static int wire_pending(int fd) { return SSL_pending(secured[fd]); }
#else
#define secure(fd) ((void)(fd))
#define wire_send send
#define wire_recv recv
#define wire_pending(fd) 0
#endif
