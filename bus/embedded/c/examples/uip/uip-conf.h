/* What uIP is to know: its types, its sizes, and the application, which is uip_node.c. */
#ifndef UIP_CONF_H
#define UIP_CONF_H
#include <stdint.h>

typedef uint8_t u8_t;
typedef uint16_t u16_t;
typedef uint16_t uip_stats_t;
typedef uint8_t uip_tcp_appstate_t; /* the node has one connection, and keeps its own state */

#define UIP_CONF_MAX_CONNECTIONS 1
#define UIP_CONF_MAX_LISTENPORTS 1
#define UIP_CONF_BUFFER_SIZE 420
#define UIP_CONF_BYTE_ORDER LITTLE_ENDIAN
#define UIP_CONF_LOGGING 0
#define UIP_CONF_UDP 0
#define UIP_CONF_STATISTICS 0

void uip_node_appcall(void);
#define UIP_APPCALL uip_node_appcall
#endif
