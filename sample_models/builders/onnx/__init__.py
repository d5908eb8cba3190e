"""Small networks of today's projects as ONNX files, without weights."""
