/* A node of a bus for microcontrollers: it publishes, and subscribes by prefix. Formats: docs/wire/.
 * C99 and C++, no heap, no globals. An instance is a struct that the caller owns; its members are
 * for reading only. Bytes and time come in as arguments, and bytes go out by a call. */
#ifndef BUSCOUPLER_NODE_H
#define BUSCOUPLER_NODE_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* What is built. A linker that drops unused functions (--gc-sections) makes these unnecessary. */
#ifndef BCN_UART
#define BCN_UART 1
#endif
#ifndef BCN_RS485
#define BCN_RS485 1 /* needs BCN_UART and BCN_RECEIVE */
#endif
#ifndef BCN_CAN
#define BCN_CAN 1
#endif
#ifndef BCN_CAN_FD
#define BCN_CAN_FD 1 /* 0: sends classic frames only; received FD frames are understood all the same */
#endif
#ifndef BCN_TCP
#define BCN_TCP 1
#endif
#ifndef BCN_I2C
#define BCN_I2C 1 /* needs BCN_RECEIVE */
#endif
#ifndef BCN_TMQ
#define BCN_TMQ 1 /* needs BCN_RECEIVE */
#endif
#ifndef BCN_ASK
#define BCN_ASK 1 /* last values, the gateway's time, and its silence; needs BCN_RECEIVE */
#endif
#ifndef BCN_RECEIVE
#define BCN_RECEIVE 1 /* 0: a node that only publishes */
#endif
#ifndef BCN_SUBSCRIPTIONS
#define BCN_SUBSCRIPTIONS 4 /* at most 255 */
#endif
#ifndef BCN_CAN_SLOTS
#define BCN_CAN_SLOTS 2 /* CAN nodes whose messages of several frames may interleave; at most 127 */
#endif

#ifndef BCN_TMQ_LINKS
#define BCN_TMQ_LINKS 4 /* connections of a TMQ client, beside the port where it listens; 3 to 127 */
#endif
#ifndef BCN_TMQ_PATTERNS
#define BCN_TMQ_PATTERNS 4 /* that it publishes and subscribes to; at most 127 */
#endif
#ifndef BCN_TMQ_SUBSCRIBERS
#define BCN_TMQ_SUBSCRIBERS 4 /* of all that it publishes; at most 127 */
#endif

#if !BCN_UART || !BCN_RECEIVE
#undef BCN_RS485
#define BCN_RS485 0
#endif
#if !BCN_RECEIVE
#undef BCN_I2C
#define BCN_I2C 0
#undef BCN_TMQ
#define BCN_TMQ 0
#undef BCN_ASK
#define BCN_ASK 0
#endif

#define BCN_PUB 1u

enum {
    BCN_OK = 0,
    BCN_TOO_LONG = -1, /* above 2048 bytes of data */
    BCN_FULL = -2,     /* no place left: for a subscription, or in the queue */
    BCN_UNSENT = -3,   /* the driver did not take it; the receiver will drop what it has of it */
    BCN_LOST = -4,     /* the stream lost its framing, or the peer speaks another wire: connect again */
    BCN_UNHEARD = -5,  /* TMQ: no subscriber is known */
    BCN_SILENT = -6,   /* the other end is not heard */
    BCN_VERSION = -7   /* the other end is heard, and speaks another version of the wire */
};

/* Take bytes for the line. Return 0, or not 0 if not all of them can be taken. */
typedef int (*bcn_write)(void *context, const uint8_t *bytes, uint16_t size);
/* Take one frame: `tokens` are `count` numbers of 4 bytes, big-endian (see bcn_token). */
typedef void (*bcn_callback)(void *context, const uint8_t *tokens, uint8_t count,
                             const uint8_t *data, uint16_t size);

struct bcn_subscription {
    const uint32_t *tokens;
    bcn_callback callback;
    void *context;
    uint8_t count;
};

/* What all links have. Counts are modulo 65536. */
struct bcn_node {
    uint16_t heard;    /* whole messages received: if it stands still, the other end is silent */
    uint16_t rejected; /* those in which no frame was */
#if BCN_RS485
    uint16_t polls; /* of this node, by its gateway */
#endif
    uint8_t subscriptions;
    struct bcn_subscription calls[BCN_SUBSCRIPTIONS];
};

/* A queue of messages in the caller's `bytes`: 2 for each message, and its own. */
struct bcn_queue {
    uint8_t *bytes;
    uint16_t capacity, used;
};

#if BCN_RECEIVE
/* Have frames that start with `tokens` passed to `callback`: BCN_OK or BCN_FULL.
 * `tokens` must outlive the node. A callback may publish, but not feed. */
int bcn_subscribe(struct bcn_node *node, const uint32_t *tokens, uint8_t count, bcn_callback callback, void *context);
/* Return token `index` of a frame. */
uint32_t bcn_token(const uint8_t *tokens, uint8_t index);
#endif

#if BCN_ASK
/* Questions to a cache on the bus (docs/wire/values.md), by the `publish` of any link. */
struct bcn_ask {
    /* Take a last value, `age_ms` old. */
    void (*value)(void *context, const uint8_t *tokens, uint8_t count, const uint8_t *data, uint16_t size,
                  uint32_t age_ms);
    void *context;
    uint32_t tokens[4]; /* of the question */
    uint32_t nonce, values_nonce, time_nonce, asked_us, heard_us;
    uint32_t seconds, microseconds, round_us; /* what was told, and how long that took */
    uint32_t said, left_out;                  /* when `complete`: values that were said, and that were not */
    uint8_t data[8];                          /* of a question for the time */
    uint8_t complete, fresh, known;
};

#define BCN_ASK_TOKENS 4u
#define BCN_ASK_TIME_BYTES 8u

/* Begin: subscribe at `node`. `nonce` is drawn at random. BCN_OK or BCN_FULL. */
int bcn_ask_init(struct bcn_ask *ask, struct bcn_node *node, uint32_t nonce);
/* Return the BCN_ASK_TOKENS tokens under which to publish a pattern, which bcn_ask_pattern has put into bytes. `value`
 * is called for the last value of each pattern that starts with it. */
const uint32_t *bcn_ask_values(struct bcn_ask *ask,
                               void (*value)(void *, const uint8_t *, uint8_t, const uint8_t *, uint16_t, uint32_t),
                               void *context);
/* Write a pattern as bytes, 4 for each token; return how many. */
uint16_t bcn_ask_pattern(uint8_t *bytes, const uint32_t *tokens, uint8_t count);
/* Return the BCN_ASK_TOKENS tokens under which to publish `ask.data`, now, of BCN_ASK_TIME_BYTES. */
const uint32_t *bcn_ask_time(struct bcn_ask *ask, uint32_t now_us);
/* Call this after each feed: half of the delay is the error. Return 1 if the time has just been told, else 0. */
int bcn_ask_heard(struct bcn_ask *ask, uint32_t now_us);
/* Return 1 and the gateway's time, in seconds since 1970 and microseconds; 0 if it is not known. Ask again within an
 * hour, before `now_us` wraps. */
int bcn_ask_now(const struct bcn_ask *ask, uint32_t now_us, uint32_t *seconds, uint32_t *microseconds);

/* What is heard of the gateway. */
struct bcn_watch {
    uint32_t since_ms;
    uint16_t heard, rejected, polls;
    int8_t result;
};

void bcn_watch_init(struct bcn_watch *watch, const struct bcn_node *node, uint32_t now_ms);
/* BCN_OK; BCN_SILENT: no whole message, and no poll of an RS-485 node, for `silence_ms`; BCN_VERSION: whole messages, but
 * no frame of this wire. On a bus that may be quiet, ask for the time meanwhile. */
int bcn_watch(struct bcn_watch *watch, const struct bcn_node *node, uint32_t now_ms, uint32_t silence_ms);
#endif

#if BCN_UART
/* A serial line: COBS and CRC-32 (docs/wire/uart.md). */
struct bcn_uart {
    bcn_write write;
    void *context;
#if BCN_RECEIVE
    struct bcn_node node;
    uint8_t *buffer;
    uint16_t capacity, used;
    uint16_t cobs, too_short, crc, oversize; /* what was dropped */
    uint8_t left, full, begun, skipping;
#endif
};

/* Begin. `buffer` holds the longest message that is received, and 4 bytes. */
void bcn_uart_init(struct bcn_uart *uart, bcn_write write, void *context, uint8_t *buffer, uint16_t capacity);
/* Send a frame: BCN_OK, BCN_TOO_LONG or BCN_UNSENT. */
int bcn_uart_publish(const struct bcn_uart *uart, const uint32_t *tokens, uint8_t count, const uint8_t *data,
                     uint16_t size);
#if BCN_RECEIVE
/* Take bytes from the line; call back for each frame. */
void bcn_uart_feed(struct bcn_uart *uart, const uint8_t *bytes, uint16_t size);
#endif
#endif

#if BCN_RS485
/* A node of a shared pair of wires, which a gateway polls (docs/wire/uart.md). */
struct bcn_rs485 {
    struct bcn_uart uart; /* subscribe at uart.node */
    struct bcn_queue queue;
    uint32_t polled_ms, said_ms, said_crc;
    uint16_t said_size;
    uint8_t address, echo, polled, said;
    uint8_t turnaround_ms, answer_ms; /* 1 and 20; may be changed after bcn_rs485_init */
};

/* Begin as node `address` (1 to 254). `queue` is for messages that wait for a poll. `echo` is 1 if the
 * receiver hears its own node. `buffer` as for a UART. */
void bcn_rs485_init(struct bcn_rs485 *pair, bcn_write write, void *context, uint8_t *buffer, uint16_t capacity,
                    uint8_t address, uint8_t echo, uint8_t *queue, uint16_t queue_capacity);
/* Queue a frame: BCN_OK, BCN_TOO_LONG or BCN_FULL. */
int bcn_rs485_publish(struct bcn_rs485 *pair, const uint32_t *tokens, uint8_t count, const uint8_t *data,
                      uint16_t size);
/* Take bytes from the pair; call back for each frame of others. */
void bcn_rs485_feed(struct bcn_rs485 *pair, const uint8_t *bytes, uint16_t size, uint32_t now_ms);
/* Tell whether it is this node's turn to speak. Ask at least every 10 ms. */
int bcn_rs485_due(const struct bcn_rs485 *pair, uint32_t now_ms);
/* If it is the turn: write one message, or that there is none. The caller switches the transceiver before
 * and after. BCN_OK or BCN_UNSENT: that message is dropped. */
int bcn_rs485_answer(struct bcn_rs485 *pair, uint32_t now_ms);
#endif

#if BCN_CAN
/* Take one frame with a 29-bit identifier. Return 0, or not 0 if it cannot be taken. On FD, `size` is a legal
 * length. A driver with few mailboxes needs a queue: a message has many frames. */
typedef int (*bcn_can_send)(void *context, uint32_t identifier, const uint8_t *bytes, uint8_t size);

#if BCN_RECEIVE
enum { /* why a frame or a transfer was dropped; docs/wire/can.md has the meanings */
    BCN_CAN_FOREIGN,
    BCN_CAN_ANONYMOUS,
    BCN_CAN_EMPTY,
    BCN_CAN_TOGGLE,
    BCN_CAN_REPEAT,
    BCN_CAN_DUPLICATE,
    BCN_CAN_UNFINISHED,
    BCN_CAN_ORPHAN,
    BCN_CAN_GAP,
    BCN_CAN_ORDER,
    BCN_CAN_WIDTH,
    BCN_CAN_OVERSIZE,
    BCN_CAN_CRC,
    BCN_CAN_BUSY, /* more nodes send messages of several frames than there are slots */
    BCN_CAN_DROPS
};

struct bcn_can_slot {
    uint32_t heard_ms, accepted_ms, accepted_crc;
    uint16_t used;
    uint8_t source; /* the sender's node id; 0xFF: free */
    uint8_t tid, toggle, open, known, accepted_tid;
};
#endif

/* CAN and CAN FD: Cyphal transfers (docs/wire/can.md). */
struct bcn_can {
    bcn_can_send send;
    void *context;
    uint16_t subject;
    uint8_t node_id, priority, fd, tid;
#if BCN_RECEIVE
    struct bcn_node node;
    uint8_t *buffer;
    uint16_t capacity; /* of one slot */
    uint16_t drops[BCN_CAN_DROPS];
    struct bcn_can_slot slots[BCN_CAN_SLOTS];
#endif
};

/* Begin as node `node_id` (1 to 127, one for each transmitter). `fd` is 1 to send FD frames. `buffer` is shared
 * by the slots in equal parts; each holds the longest message of several frames, and 2 bytes, on FD 17. */
void bcn_can_init(struct bcn_can *can, bcn_can_send send, void *context, uint8_t node_id, uint8_t fd,
                  uint8_t *buffer, uint16_t capacity);
/* Send a frame: BCN_OK, BCN_TOO_LONG or BCN_UNSENT. */
int bcn_can_publish(struct bcn_can *can, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size);
#if BCN_RECEIVE
/* Take a data frame with an extended identifier; call back if it completes a message. */
void bcn_can_feed(struct bcn_can *can, uint32_t identifier, const uint8_t *bytes, uint8_t size, uint32_t now_ms);
#endif
#endif

#if BCN_TCP
/* A stream of frames (docs/wire/tcp.md). */
struct bcn_tcp {
    bcn_write write;
    void *context;
    uint8_t lost;
#if BCN_RECEIVE
    struct bcn_node node;
    uint8_t *buffer;
    uint16_t capacity, used, need, skip, oversize;
#endif
};

/* Begin. `buffer` holds the longest message that is received, at least 16 bytes. */
void bcn_tcp_init(struct bcn_tcp *tcp, bcn_write write, void *context, uint8_t *buffer, uint16_t capacity);
/* Tell that there is a new connection. */
void bcn_tcp_connected(struct bcn_tcp *tcp);
/* Send a frame of 4 + 4 * count + size bytes: BCN_OK, BCN_TOO_LONG, or BCN_LOST: connect again, because the
 * driver did not take all of this frame or of an earlier one. */
int bcn_tcp_publish(struct bcn_tcp *tcp, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size);
#if BCN_RECEIVE
/* Take bytes of the stream; call back for each frame: BCN_OK, or BCN_LOST: connect again. Where only sending failed,
 * bytes are taken all the same: give it what came before the connection ended. */
int bcn_tcp_feed(struct bcn_tcp *tcp, const uint8_t *bytes, uint16_t size);
#endif
#endif

#if BCN_TMQ
/* A client of TMQ brokers (docs/tmq.md), which has several connections and a port where it listens. An address
 * is 8 bytes: 0, 2, the port (2 bytes), the IPv4 address. A connection is known by its number `link`, below
 * BCN_TMQ_LINKS. The functions of the driver do not call the client. */
struct bcn_tmq_driver {
    /* Begin to connect, and tell bcn_tmq_connected or bcn_tmq_closed later. Return 0, or not 0 on failure. */
    int (*dial)(void *context, uint8_t link, const uint8_t *address);
    /* Return how many bytes `write` takes now. */
    uint16_t (*room)(void *context, uint8_t link);
    /* Take bytes. Return 0, or not 0 if not all of them can be taken: then `close` follows. */
    int (*write)(void *context, uint8_t link, const uint8_t *bytes, uint16_t size);
    /* Close behind what was written; bcn_tmq_closed is not to be told. */
    void (*close)(void *context, uint8_t link);
};

struct bcn_tmq_link {
    uint32_t heard_ms, said_ms; /* heard: or begun */
    uint16_t used, need, skip, silence_ms;
    uint8_t address[8];
    uint8_t state, role, stalled, listing;
};

struct bcn_tmq_pattern {
    const uint32_t *tokens;
    uint8_t count, type, due; /* type 0: free */
};

struct bcn_tmq_subscriber {
    uint32_t down_ms;
    uint8_t address[8];
    uint8_t pattern, pause_s, named, gone; /* pause_s 0: it takes connections */
};

struct bcn_tmq {
    struct bcn_node node;
    const struct bcn_tmq_driver *driver;
    void *context;
    const uint8_t *brokers;
    uint8_t *buffer;
    uint32_t number, broker_ms, refresh_ms, trial_ms;
    uint16_t capacity; /* of one connection */
    uint16_t pause_ms;
    uint16_t sent, unsent, unheard, full; /* copies of messages; subscribers beyond the bound */
    uint16_t refused, oversize, lost;     /* by a broker; messages beyond the buffer; cut or illegal connections */
    uint8_t own[8];
    uint8_t broker_count, at, up, each, subscriber_count;
    struct bcn_queue queue;
    struct bcn_tmq_link links[BCN_TMQ_LINKS];
    struct bcn_tmq_pattern patterns[BCN_TMQ_PATTERNS];
    struct bcn_tmq_subscriber subscribers[BCN_TMQ_SUBSCRIBERS];
};

/* Begin. `brokers` are `count` addresses, best first, which outlive the client. `own` is the address where it
 * listens; the IPv4 address 0 means that a broker of ours finds it out. `number` is drawn at random. The links
 * share `buffer` in equal parts; each holds the longest message that is received, at least 28 bytes. Lists of brokers may
 * be longer. Each copy of a message that waits takes 10 bytes and its own in `queue`. */
void bcn_tmq_init(struct bcn_tmq *tmq, const struct bcn_tmq_driver *driver, void *context, const uint8_t *brokers,
                  uint8_t count, const uint8_t *own, uint32_t number, uint8_t *buffer, uint16_t capacity,
                  uint8_t *queue, uint16_t queue_capacity);
/* Subscribe, as bcn_subscribe does, and tell the broker at the next tick: BCN_OK or BCN_FULL. */
int bcn_tmq_subscribe(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count, bcn_callback callback, void *context);
/* Ask for the subscribers of what is published under exactly these tokens (one or more), which outlive the client:
 * BCN_OK, BCN_FULL, or BCN_TOO_LONG: a link's part of the buffer has no room for them and 12 bytes. */
int bcn_tmq_declare(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count);
/* Take a subscription, or a declaration, back. Not from within a callback. */
void bcn_tmq_unsubscribe(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count);
void bcn_tmq_undeclare(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count);
/* Send a message to all subscribers: BCN_OK, BCN_TOO_LONG, BCN_UNHEARD (also before the broker has answered
 * bcn_tmq_declare), BCN_FULL or BCN_UNSENT: one of them cannot have it. */
int bcn_tmq_publish(struct bcn_tmq *tmq, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size,
                    uint32_t now_ms);
/* Work on time: at least every 100 ms. BCN_OK, or BCN_SILENT while no broker answers. */
int bcn_tmq_tick(struct bcn_tmq *tmq, uint32_t now_ms);
/* Tell that a connection came to the port. Return its link, or BCN_FULL: close it. */
int bcn_tmq_accepted(struct bcn_tmq *tmq, uint32_t now_ms);
/* Tell that a dialled connection is there. */
void bcn_tmq_connected(struct bcn_tmq *tmq, uint8_t link, uint32_t now_ms);
/* Tell that a connection failed, or that the other side closed it. */
void bcn_tmq_closed(struct bcn_tmq *tmq, uint8_t link, uint32_t now_ms);
/* Take bytes of a connection; call back for each message. */
void bcn_tmq_feed(struct bcn_tmq *tmq, uint8_t link, const uint8_t *bytes, uint16_t size, uint32_t now_ms);
#endif

#if BCN_I2C
/* A target's mailbox (docs/wire/i2c.md) of 64 bytes, which the controller reads and writes. */
struct bcn_i2c {
    struct bcn_node node;
    volatile uint8_t *memory;
    uint8_t *buffer;
    uint16_t capacity, used;
    struct bcn_queue queue;
    uint32_t waits_ms, sending_crc;
    uint16_t at;                                                   /* in the message that is being sent */
    uint16_t orphan, unfinished, oversize, too_short, crc, reset; /* what was received and dropped */
    uint16_t unsent;                                               /* messages lost on the way out */
    uint8_t epoch, epoch_before, busy, placed, toggle, ack, open, skipping;
};

/* Begin: clear `memory`. `buffer` holds the longest message that is received, and 4 bytes. */
void bcn_i2c_init(struct bcn_i2c *box, volatile uint8_t *memory, uint8_t *buffer, uint16_t capacity, uint8_t *queue,
                  uint16_t queue_capacity);
/* Queue a frame: BCN_OK, BCN_TOO_LONG or BCN_FULL. */
int bcn_i2c_publish(struct bcn_i2c *box, const uint32_t *tokens, uint8_t count, const uint8_t *data, uint16_t size);
/* Work on the memory; call back if it completes a message. Call it from the main loop, after each write of the
 * controller and at least every 0.5 s. */
void bcn_i2c_poll(struct bcn_i2c *box, uint32_t now_ms);
/* Tell whether the alert line should be pulled low. */
int bcn_i2c_pending(const struct bcn_i2c *box);
#endif

#ifdef __cplusplus
}
#if __cplusplus >= 201103L
/* BCN_TOKEN("temp") is the token of a name, made by the compiler. In C: python -m bus.embedded.tokens. */
constexpr uint32_t bcn_mix(uint32_t hash)
{
    return hash ^ (hash >> 16);
}
constexpr uint32_t bcn_hash(const char32_t *text, uint32_t hash = 0u)
{
    return *text == 0u ? bcn_mix(hash) : bcn_hash(text + 1, 65599u * hash + static_cast<uint32_t>(*text));
}
#define BCN_TOKEN(name) (bcn_hash(U"" name))
#endif
#endif
#endif
