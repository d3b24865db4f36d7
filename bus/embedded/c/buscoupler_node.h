/* A node of a bus over a serial line (UART): COBS and CRC-32, as docs/wire/uart.md says.
 * C99 and C++, no heap, no globals. An instance is a struct that the caller owns. */
#ifndef BUSCOUPLER_NODE_H
#define BUSCOUPLER_NODE_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#ifndef BCN_SUBSCRIPTIONS
#define BCN_SUBSCRIPTIONS 4 /* at most 255 */
#endif
#ifndef BCN_RECEIVE
#define BCN_RECEIVE 1 /* 0: a node that only publishes */
#endif
#define BCN_PUB 1u

/* Take bytes for the line. */
typedef void (*bcn_write)(void *context, const uint8_t *bytes, uint16_t size);
/* Take one frame: `tokens` are `count` numbers of 4 bytes, big-endian (see bcn_token). */
typedef void (*bcn_callback)(void *context, const uint8_t *tokens, uint8_t count,
                             const uint8_t *data, uint16_t size);

struct bcn_subscription {
    const uint32_t *tokens;
    bcn_callback callback;
    void *context;
    uint8_t count;
};

struct bcn_node {
    bcn_write write;
    void *context;
#if BCN_RECEIVE
    uint8_t *buffer; /* the longest message that is received, and 4 bytes */
    uint16_t capacity, used;
    uint16_t cobs, too_short, crc, oversize, rejected; /* drops, modulo 65536; rejected: no frame */
    uint8_t left, full, begun, skipping, subscriptions;
    struct bcn_subscription calls[BCN_SUBSCRIPTIONS];
#endif
};

/* Begin. `buffer` and `capacity` hold a received message and its CRC. */
void bcn_init(struct bcn_node *node, bcn_write write, void *context, uint8_t *buffer, uint16_t capacity);
/* Send a frame. Return 0, or -1 above 2048 bytes of data: nothing is sent. */
int bcn_publish(struct bcn_node *node, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size);
#if BCN_RECEIVE
/* Have frames that start with `tokens` passed to `callback`. Return 0, or -1 if no place is left.
 * `tokens` must outlive the node. */
int bcn_subscribe(struct bcn_node *node, const uint32_t *tokens, uint8_t count, bcn_callback callback, void *context);
/* Take bytes from the line; call back for each frame. A callback may publish, but not feed. */
void bcn_feed(struct bcn_node *node, const uint8_t *bytes, uint16_t size);
/* Return token `index` of a frame. */
uint32_t bcn_token(const uint8_t *tokens, uint8_t index);
#endif
#ifdef __cplusplus
}
#endif
#endif
