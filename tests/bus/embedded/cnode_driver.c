/* Feeds damaged traffic to nodes with small buffers on the heap; built with sanitizers.
 * As a program: `cnode_driver COUNT SEED` makes COUNT inputs for each of the KINDS of links, of valid traffic, and
 * prints for each kind how many frames came through.
 * With libFuzzer (-DBCN_FUZZER -fsanitize=fuzzer): one input for all links. */
#include "buscoupler_node.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY 64
#define TRAFFIC 2048
#define BOX 64
#define KINDS 6

struct traffic {
    uint8_t bytes[TRAFFIC];
    uint16_t used;
};

static unsigned long heard;
static uint32_t random_state;

static uint32_t chance(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % below;
}

static int collect(void *context, const uint8_t *bytes, uint16_t size)
{
    struct traffic *out = context;
    if (out == NULL || size > TRAFFIC - out->used) {
        return 1;
    }
    memcpy(out->bytes + out->used, bytes, size);
    out->used = (uint16_t)(out->used + size);
    return 0;
}

/* A CAN frame in traffic: its length, its identifier, its data. */
static int collect_can(void *context, uint32_t identifier, const uint8_t *bytes, uint8_t size)
{
    const uint8_t head[5] = {size, (uint8_t)(identifier >> 24), (uint8_t)(identifier >> 16),
                             (uint8_t)(identifier >> 8), (uint8_t)identifier};
    return collect(context, head, 5) || collect(context, bytes, size);
}

/* Touch every byte, so that the sanitizers see what a program may read. */
static void count(void *context, const uint8_t *tokens, uint8_t number, const uint8_t *data, uint16_t size)
{
    volatile uint8_t sum = 0;
    (void)context;
    for (unsigned i = 0; i < 4u * number; i++) {
        sum = (uint8_t)(sum + tokens[i]);
    }
    for (unsigned i = 0; i < size; i++) {
        sum = (uint8_t)(sum + data[i]);
    }
    heard++;
}

static void feed_uart(const uint8_t *bytes, uint16_t size)
{
    uint8_t *buffer = malloc(CAPACITY), *queue = malloc(CAPACITY);
    struct bcn_uart uart;
    struct bcn_rs485 pair;
    const uint32_t token = 1;
    uint32_t now = 0;
    bcn_uart_init(&uart, collect, NULL, buffer, CAPACITY);
    bcn_subscribe(&uart.node, NULL, 0, count, NULL);
    bcn_uart_feed(&uart, bytes, size);
    bcn_rs485_init(&pair, collect, NULL, buffer, CAPACITY, 5, 1, queue, CAPACITY);
    bcn_subscribe(&pair.uart.node, &token, 1, count, NULL);
    for (uint16_t at = 0; at < size; at++) {
        if (at % 16 == 0) {
            (void)bcn_rs485_publish(&pair, &token, 1, bytes, at % 40);
        }
        bcn_rs485_feed(&pair, bytes + at, 1, now++);
        (void)bcn_rs485_answer(&pair, now);
    }
    free(buffer);
    free(queue);
}

static void feed_tcp(const uint8_t *bytes, uint16_t size)
{
    uint8_t *buffer = malloc(CAPACITY);
    struct bcn_tcp tcp;
    bcn_tcp_init(&tcp, collect, NULL, buffer, CAPACITY);
    bcn_subscribe(&tcp.node, NULL, 0, count, NULL);
    for (uint16_t at = 0; at < size; at++) {
        if (bcn_tcp_feed(&tcp, bytes + at, 1) == BCN_LOST) {
            bcn_tcp_connected(&tcp);
        }
    }
    free(buffer);
}

static void feed_can(const uint8_t *bytes, uint16_t size)
{
    uint8_t *buffer = malloc(BCN_CAN_SLOTS * CAPACITY);
    struct bcn_can can;
    uint16_t at = 0;
    uint32_t now = 0;
    bcn_can_init(&can, collect_can, NULL, 9, 0, buffer, BCN_CAN_SLOTS * CAPACITY);
    bcn_subscribe(&can.node, NULL, 0, count, NULL);
    while (at + 5 < size) {
        const uint8_t *b = bytes + at;
        const uint32_t id = (uint32_t)b[1] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 8 | b[4];
        const uint8_t most = (uint8_t)(size - at - 5 < 64 ? size - at - 5 : 64);
        const uint8_t length = b[0] < most ? b[0] : most;
        uint8_t *data = malloc(length ? length : 1u); /* exactly as long as the frame */
        memcpy(data, b + 5, length);
        bcn_can_feed(&can, id, data, length, now);
        now += length == 3 ? 700 : 1;
        free(data);
        at = (uint16_t)(at + 5 + length);
    }
    free(buffer);
}

/* Each 33 bytes are a pause, and what the controller writes. */
static void feed_box(const uint8_t *bytes, uint16_t size)
{
    uint8_t *buffer = malloc(CAPACITY), *queue = malloc(CAPACITY), *memory = malloc(BOX);
    const uint32_t token = 1;
    struct bcn_i2c box;
    uint32_t now = 0;
    bcn_i2c_init(&box, memory, buffer, CAPACITY, queue, CAPACITY);
    bcn_subscribe(&box.node, NULL, 0, count, NULL);
    memory[0x1F] = 1;
    bcn_i2c_poll(&box, now);
    for (uint16_t at = 0; at + 33 <= size; at = (uint16_t)(at + 33)) {
        memcpy(memory, bytes + at + 1, 32);
        (void)bcn_i2c_publish(&box, &token, 1, bytes + at, 33);
        now += bytes[at];
        bcn_i2c_poll(&box, now);
    }
    free(buffer);
    free(queue);
    free(memory);
}

static int dial(void *context, uint8_t link, const uint8_t *address)
{
    const uint8_t *input = context;
    return link == 2 && input[0] == address[7];
}

static uint16_t room(void *context, uint8_t link)
{
    const uint8_t *input = context;
    return input[1] & 1 ? 0xFFFFu : link;
}

static int say(void *context, uint8_t link, const uint8_t *bytes, uint16_t size)
{
    const uint8_t *input = context;
    volatile uint8_t sum = 0;
    for (uint16_t at = 0; at < size; at++) {
        sum = (uint8_t)(sum + bytes[at]);
    }
    return input[2] == 7 && size > 20u + link;
}

static void shut(void *context, uint8_t link)
{
    (void)context;
    (void)link;
}

/* The first 3 bytes say how the driver behaves; the others go to the broker's link and to others in turn. */
static void feed_tmq(const uint8_t *bytes, uint16_t size)
{
    static const struct bcn_tmq_driver driver = {dial, room, say, shut};
    static const uint8_t addresses[16] = {0, 2, 1, 2, 10, 0, 0, 1, 0, 2, 1, 2, 10, 0, 0, 2};
    static const uint32_t tokens[2] = {1, 0x80000000u};
    uint8_t *buffer, *queue, input[3] = {0, 1, 0}, link = 0;
    struct bcn_tmq tmq;
    uint32_t now = 0xFFFFFF00u;
    uint16_t at = 0;
    buffer = malloc(BCN_TMQ_LINKS * CAPACITY);
    queue = malloc(2 * CAPACITY);
    memcpy(input, bytes, size < 3u ? size : 3u);
    bcn_tmq_init(&tmq, &driver, input, addresses, 2, addresses, 9, buffer, BCN_TMQ_LINKS * CAPACITY, queue,
                 2 * CAPACITY);
    bcn_tmq_subscribe(&tmq, tokens, 1, count, NULL);
    bcn_tmq_declare(&tmq, tokens, 2);
    while (at < size) {
        const uint16_t part = (uint16_t)(size - at < 50 ? size - at : 50);
        bcn_tmq_tick(&tmq, now);
        for (uint8_t i = 0; i < BCN_TMQ_LINKS; i++) {
            bcn_tmq_connected(&tmq, i, now);
        }
        bcn_tmq_feed(&tmq, link, bytes + at, part, now);
        (void)bcn_tmq_publish(&tmq, tokens, 2, bytes + at, part, now);
        at = (uint16_t)(at + part);
        if (bytes[at - 1] % 5 == 0) {
            bcn_tmq_closed(&tmq, bytes[at - 1] % BCN_TMQ_LINKS, now);
        }
        if (bytes[at - 1] % 4 == 1) {
            const int accepted = bcn_tmq_accepted(&tmq, now);
            link = (uint8_t)(accepted < 0 ? 0 : accepted);
        }
        now += bytes[at - 1] * 20u;
    }
    bcn_tmq_undeclare(&tmq, tokens, 2);
    bcn_tmq_unsubscribe(&tmq, tokens, 1);
    bcn_tmq_tick(&tmq, now);
    free(buffer);
    free(queue);
}

static void value(void *context, const uint8_t *tokens, uint8_t number, const uint8_t *data, uint16_t size,
                  uint32_t age_ms)
{
    count(context, tokens, number, data, (uint16_t)(size + (age_ms & 0u)));
}

/* A node on a serial line that asks: for values by the nonces 8, 10 and so on, for the time by 9, 11. */
static void feed_ask(const uint8_t *bytes, uint16_t size)
{
    uint8_t *buffer = malloc(CAPACITY);
    uint32_t now = 0xFFFFFF00u, seconds, microseconds;
    struct bcn_uart uart;
    struct bcn_ask ask;
    struct bcn_watch watch;
    bcn_uart_init(&uart, collect, NULL, buffer, CAPACITY);
    bcn_ask_init(&ask, &uart.node, 7);
    bcn_watch_init(&watch, &uart.node, now);
    for (uint16_t at = 0; at < size; at = (uint16_t)(at + 8)) {
        if (at % 64 == 0) {
            (void)bcn_ask_values(&ask, value, NULL);
            (void)bcn_ask_time(&ask, now);
        }
        bcn_uart_feed(&uart, bytes + at, (uint16_t)(size - at < 8 ? size - at : 8));
        now += 86u * bytes[at];
        if (bcn_ask_heard(&ask, now)) {
            heard++;
        }
        if (bcn_ask_now(&ask, now, &seconds, &microseconds) && microseconds >= 1000000u) {
            abort();
        }
        (void)bcn_watch(&watch, &uart.node, now, 50000);
    }
    free(buffer);
}

static void (*const feeds[KINDS])(const uint8_t *, uint16_t) = {feed_uart, feed_tcp, feed_can,
                                                                feed_box,  feed_tmq, feed_ask};

#ifdef BCN_FUZZER
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size > 1 && size < 4096) {
        feeds[bytes[0] % KINDS](bytes + 1, (uint16_t)(size - 1));
    }
    return 0;
}
#else
static void damage(struct traffic *traffic)
{
    uint32_t times = chance(4);
    while (times-- > 0 && traffic->used > 0) {
        const uint32_t at = chance(traffic->used);
        if (chance(3) > 0) {
            traffic->bytes[at] ^= (uint8_t)(1u << chance(8));
        } else { /* a byte is lost */
            traffic->used--;
            memmove(traffic->bytes + at, traffic->bytes + at + 1, traffic->used - at);
        }
    }
}

/* What a controller writes: a segment behind the other, with the bits that the target expects. */
static void segments(struct traffic *traffic)
{
    static const uint8_t message[8] = {1, 0, 0, 0, 0x79, 0xB8, 0xF8, 0x99};
    uint8_t write[33] = {0};
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned at = 1; at < 33; at++) {
            write[at] = (uint8_t)chance(256);
        }
        memcpy(write + 23, message, sizeof message);
        write[31] = (uint8_t)(chance(2) ? sizeof message : chance(33));
        write[32] = (uint8_t)(1u | (i == 0 ? 0x80u : 0u) | (i & 1u ? 0u : 0x20u) | (chance(2) ? 0x40u : 0u)
                              | (chance(2) ? 0x10u : 0u));
        (void)collect(traffic, write, 33);
    }
}

/* What a broker and publishers say: greetings, lists, messages. */
static void packets(struct traffic *traffic)
{
    static const uint8_t types[6] = {0x02, 0x02, 0x05, 0x05, 0x0D, 0x10};
    static const uint8_t tokens[8] = {0, 0, 0, 1, 0x80, 0, 0, 0};
    static const uint8_t address[8] = {0, 2, 1, 2, 10, 0, 0, 3};
    uint8_t data[72]; /* lists may be longer than the buffer */
    static const uint8_t hello[12] = {0x10, 0, 0, 8, 1, 1, 11, 184, 0, 0, 0, 7};
    for (unsigned at = 0; at < sizeof data; at++) {
        data[at] = (uint8_t)(address[at % 8] + (at % 8 == 7 ? at / 8 : 0));
    }
    (void)collect(traffic, hello, sizeof hello);
    for (uint32_t i = 0, frames = 1 + chance(6); i < frames; i++) {
        const uint8_t size = (uint8_t)(8u * chance(chance(3) ? 4 : 10)), number = (uint8_t)(chance(6) ? 2 : chance(3));
        const uint8_t head[4] = {types[chance(6)], number, 0, size};
        data[7] = (uint8_t)chance(9);
        (void)collect(traffic, head, 4);
        (void)collect(traffic, tokens, (uint16_t)(4u * number));
        (void)collect(traffic, data, size);
    }
}

/* What a cache answers. */
static void answer(struct bcn_uart *uart, const uint8_t *data)
{
    static const uint32_t words[4] = {0x25ACAFDDu, 0x322A0B71u, 0x3699F3AFu, 0x49384495u};
    const uint32_t word = chance(4);
    const uint32_t tokens[7] = {0xAA5B7E09u, 0xCFE7DDA5u, words[word], 7u + chance(5), chance(9), 1u, 2u};
    const uint8_t number = (uint8_t)(chance(5) ? (word == 0 ? 6u : 4u) : chance(8));
    (void)bcn_uart_publish(uart, tokens, number, data, (uint16_t)(chance(5) ? 8u : chance(20)));
}

static void make(struct traffic *traffic, unsigned kind)
{
    uint8_t data[80];
    const uint32_t tokens[3] = {1u, chance(3), 0x80000000u};
    const uint8_t number = (uint8_t)chance(4);
    struct bcn_uart uart;
    struct bcn_tcp tcp;
    struct bcn_can can;
    traffic->used = 0;
    bcn_uart_init(&uart, collect, traffic, NULL, 0);
    bcn_tcp_init(&tcp, collect, traffic, NULL, 0);
    bcn_can_init(&can, collect_can, traffic, (uint8_t)(1 + chance(4)), (uint8_t)chance(2), NULL, 0);
    for (uint32_t i = 0, frames = 1 + chance(3); i < frames; i++) {
        const uint16_t size = (uint16_t)chance(sizeof data);
        memset(data, (int)chance(kind == 5 ? 256 : 3), sizeof data);
        if (kind == 0) {
            (void)bcn_uart_publish(&uart, tokens, number, data, size);
        } else if (kind == 1) {
            (void)bcn_tcp_publish(&tcp, tokens, number, data, size);
        } else if (kind == 2) {
            (void)bcn_can_publish(&can, tokens, number, data, size);
        } else if (kind == 3) {
            segments(traffic);
        } else if (kind == 4) {
            packets(traffic);
        } else {
            answer(&uart, data);
        }
    }
    damage(traffic);
}

int main(int count_of_arguments, char **arguments)
{
    static struct traffic traffic;
    const long inputs = count_of_arguments > 1 ? atol(arguments[1]) : 1000;
    random_state = count_of_arguments > 2 ? (uint32_t)atol(arguments[2]) | 1u : 1u;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        heard = 0;
        for (long i = 0; i < inputs; i++) {
            make(&traffic, kind);
            feeds[kind](traffic.bytes, traffic.used);
        }
        printf("%lu\n", heard);
    }
    return 0;
}
#endif
