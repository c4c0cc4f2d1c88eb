"""Time spans of the talk between a master and its slaves, in seconds."""

HEARTBEAT_SPAN_S = 1.0  # a master greets each of its slaves so often
HEARTBEAT_TOLERANCE_S = 10.0  # silence that ends a connection, on either end
REQUEST_TIMEOUT_S = 10.0  # a slave answers a request (not a task) within this time
