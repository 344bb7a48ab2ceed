# frozen_string_literal: true

# The producer's side: the bodies the harness wrote, pushed with Sidekiq's bulk call, a thousand at a time, or one a call.
# Reports times around the calls alone; connecting and reading the file come before them.
require 'json'
require_relative 'job'

BATCH = 1000
GATE_S = 0.005

def bodies(first, count)
  File.foreach(ENV.fetch('BENCH_BODIES'), chomp: true).first(first + count).drop(first)
end

def now_ns
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def push
  all = bodies(0, Integer(ENV.fetch('BENCH_JOBS')))
  start = now_ns
  all.each_slice(BATCH) do |slice|
    Sidekiq::Client.push_bulk('class' => Job, 'args' => slice.map { |body| [body] })
  end
  puts JSON.generate(push_s: (now_ns - start) / 1e9)
end

# One a call, by one of several processes, which begin when the harness opens the gate.
def produce
  share = bodies(Integer(ENV.fetch('BENCH_FIRST')), Integer(ENV.fetch('BENCH_COUNT')))
  File.write(ENV.fetch('BENCH_READY'), '')
  sleep GATE_S until File.exist?(ENV.fetch('BENCH_GO'))
  begun = now_ns
  share.each { |body| Job.perform_async(body) }
  puts JSON.generate(begun_ns: begun, ended_ns: now_ns)
end

Sidekiq.redis(&:ping)
ARGV == ['produce'] ? produce : push
