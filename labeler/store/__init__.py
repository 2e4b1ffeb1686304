"""Label stores: durable, checksummed storage of paid answers on disk, or in memory."""
