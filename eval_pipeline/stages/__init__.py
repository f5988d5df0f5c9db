"""The two long loops, predict and judge: concurrent, resumable, journalled before it counts."""
