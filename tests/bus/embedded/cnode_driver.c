/* Feed frames, half of them damaged, to a node with a small buffer: built with sanitizers by test_c_node.py. */
#include "buscoupler_node.h"
#include <stdio.h>
#include <stdlib.h>
static unsigned long got; static uint8_t line[400]; static unsigned ln;
static void w(void*c,const uint8_t*b,uint16_t n){(void)c;while(n--)if(ln<sizeof line)line[ln++]=*b++;}
static void cb(void*c,const uint8_t*t,uint8_t k,const uint8_t*d,uint16_t n){volatile uint8_t s=0;(void)c;for(unsigned i=0;i<4u*k;i++)s^=t[i];for(unsigned i=0;i<n;i++)s^=d[i];got++;}
int main(void){uint32_t r=1,tk[3]={1,0,0x80000000u};struct bcn_node n;uint8_t*buf=malloc(64),d[48];bcn_init(&n,w,0,buf,64);bcn_subscribe(&n,0,0,cb,0);
for(long i=0;i<1000000;i++){ln=0;r=r*1664525u+1013904223u;unsigned z=(r>>24)%40;for(unsigned j=0;j<z;j++)d[j]=(uint8_t)(r>>(j%24));bcn_publish(&n,tk,(uint8_t)((r>>20)%4),d,(uint16_t)z);if(r&0x10000)line[(r>>8)%ln]^=(uint8_t)(r>>3);bcn_feed(&n,line,(uint16_t)ln);}
printf("%lu %lu\n",got,(unsigned long)(n.cobs+n.crc));free(buf);}
