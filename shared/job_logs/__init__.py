"""The output of jobs that is kept beyond the topic `logs`: chunks of lines, one object each."""
