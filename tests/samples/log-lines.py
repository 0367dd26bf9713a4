from runtime import log

log.debug("starting")
log.info("read the table", rows=12, columns=["a", "b"])
log.warning("slow", seconds=1.5)
log.error("größer als erwartet", at=float("inf"), what={1})
