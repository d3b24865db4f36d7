/* A client of TMQ on plain TCP: one pattern, IPv4, one packet a connection, as the reference of 2015 (docs/tmq.md).
 *
 *   cc -o tmq tmq.c
 *   ./tmq sub 127.0.0.1 9942 TOKEN...         prints the first message
 *   ./tmq pub 127.0.0.1 9942 TOKEN... TEXT    sends TEXT to the first subscriber that the broker names
 *
 * `buscoupler tokens` prints the tokens of names. Exit status: 0 done, 1 the network failed, 2 wrong words.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SUB = 0x02, ADD = 0x05, PUBLISH = 0x45, SUBSCRIBE = 0x46, DATA_MAX = 2048, TOKENS_MAX = 255 };

static void fail(const char *what) { perror(what); exit(1); }

/* Read a decimal number, or a hexadecimal one after 0x; return whether the word is one and at most `most`. */
static int number(const char *word, unsigned long long most, uint32_t *to) {
    int hex = !strncmp(word, "0x", 2);
    const char *digits = word + 2 * hex;
    size_t count = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");
    unsigned long long value = strtoull(digits, NULL, hex ? 16 : 10);
    *to = (uint32_t)value;
    return count && count <= 10 && !digits[count] && value <= most;
}

static int usage(void) {
    fprintf(stderr, "usage: tmq sub|pub HOST PORT TOKEN... [TEXT]; tokens are numbers: `buscoupler tokens NAME`\n");
    return 2;
}

static size_t put(uint8_t *to, int type, const uint32_t *tokens, int count, const void *data, size_t size) {
    uint16_t bytes = htons((uint16_t)size);
    to[0] = (uint8_t)type, to[1] = (uint8_t)count;
    memcpy(to + 2, &bytes, 2);
    for (int i = 0; i < count; i++) {
        uint32_t token = htonl(tokens[i]);
        memcpy(to + 4 + 4 * i, &token, 4);
    }
    memcpy(to + 4 + 4 * count, data, size);
    return 4 + 4 * (size_t)count + size;
}

/* Whether a line leads to itself: who dials a port of this machine at which nobody listens may get that port. */
static int leads_to_itself(int line) {
    struct sockaddr_in own = {0}, other = {0};
    socklen_t length = sizeof own;
    if (getsockname(line, (struct sockaddr *)&own, &length)) return 0;
    if (getpeername(line, (struct sockaddr *)&other, &length)) return 0;
    return own.sin_port == other.sin_port && own.sin_addr.s_addr == other.sin_addr.s_addr;
}

static void say(struct sockaddr_in to, const uint8_t *packet, size_t size) {
    int line = socket(AF_INET, SOCK_STREAM, 0);
    if (line < 0 || connect(line, (struct sockaddr *)&to, sizeof to)) fail("connect");
    if (leads_to_itself(line)) {
        struct linger at_once = {1, 0}; /* the port is free for who is to listen there */
        setsockopt(line, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        errno = ECONNREFUSED;
        fail("connect");
    }
    for (size_t sent = 0; sent < size;) {
        ssize_t count = send(line, packet + sent, size - sent, MSG_NOSIGNAL);
        if (count < 0) fail("send");
        sent += (size_t)count;
    }
    close(line);
}

static int all(int line, uint8_t *to, size_t size) { /* whether so many bytes came */
    return recv(line, to, size, MSG_WAITALL) == (ssize_t)size;
}

/* Wait for a packet of a type; return its data's length. Others are left, and so are packets cut short. */
static size_t hear(int listener, int type, uint8_t *data) {
    for (;;) {
        int line = accept(listener, NULL, NULL);
        uint8_t head[4], tokens[4 * TOKENS_MAX];
        if (line < 0) fail("accept");
        int whole = all(line, head, 4);
        size_t size = whole ? (size_t)(head[2] << 8 | head[3]) : 0;
        whole = whole && size <= DATA_MAX && all(line, tokens, 4 * (size_t)head[1]) && all(line, data, size);
        close(line);
        if (whole && head[0] == type) return size;
    }
}

int main(int count, char **words) {
    int publishes = count > 1 && !strcmp(words[1], "pub"), tokens_end = count - publishes;
    if (count < 5 + publishes || (!publishes && strcmp(words[1], "sub")) || tokens_end - 4 > TOKENS_MAX
        || (publishes && strlen(words[count - 1]) > DATA_MAX))
        return usage();
    uint32_t tokens[TOKENS_MAX], port;
    if (!number(words[3], 65535, &port) || !port) return usage();
    for (int i = 4; i < tokens_end; i++)
        if (!number(words[i], UINT32_MAX, &tokens[i - 4])) return usage();

    struct sockaddr_in broker = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in own = {.sin_family = AF_INET}; /* any address, a free port */
    socklen_t length = sizeof own;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (inet_pton(AF_INET, words[2], &broker.sin_addr) != 1) return fprintf(stderr, "not IPv4: %s\n", words[2]), 2;
    if (bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, 8)) fail("listen");
    getsockname(listener, (struct sockaddr *)&own, &length);

    uint8_t packet[4 + 4 * TOKENS_MAX + DATA_MAX], data[DATA_MAX], here[8] = {0, 2};
    memcpy(here + 2, &own.sin_port, 2); /* the address 0.0.0.0: the broker takes that of the connection */
    int type = publishes ? PUBLISH : SUBSCRIBE, own_tokens = tokens_end - 4;
    say(broker, packet, put(packet, type, tokens, own_tokens, here, sizeof here));

    if (!publishes) {
        size_t size = hear(listener, SUB, data);
        fwrite(data, 1, size, stdout);
        return putchar('\n') == EOF;
    }
    while (hear(listener, ADD, data) < 8) {}
    struct sockaddr_in subscriber = {.sin_family = AF_INET};
    memcpy(&subscriber.sin_port, data + 2, 2);
    memcpy(&subscriber.sin_addr, data + 4, 4);
    const char *text = words[count - 1];
    say(subscriber, packet, put(packet, SUB, tokens, own_tokens, text, strlen(text)));
    return 0;
}
