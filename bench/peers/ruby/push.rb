# frozen_string_literal: true

# The producer's side: the bodies the harness wrote, pushed with Sidekiq's bulk call, a thousand at a time.
# Reports the time from the first call to the last acknowledgement; connecting and reading the file come before it.
require 'json'
require_relative 'job'

BATCH = 1000

bodies = File.foreach(ENV.fetch('BENCH_BODIES'), chomp: true).first(Integer(ENV.fetch('BENCH_JOBS')))
Sidekiq.redis(&:ping)
start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
bodies.each_slice(BATCH) do |slice|
  Sidekiq::Client.push_bulk('class' => Job, 'args' => slice.map { |body| [body] })
end
puts JSON.generate(push_s: Process.clock_gettime(Process::CLOCK_MONOTONIC) - start)
